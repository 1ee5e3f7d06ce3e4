// A thread that calls functions at given times of SteadyNow(), for deadlines and times to
// live.
#pragma once

#include <cstdint>
#include <map>
#include <thread>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"

namespace gemmd {

// Thread-safe. Functions run on the timer's thread with no lock held, and must be short.
// Functions that are not yet due at destruction never run.
class Timer {
 public:
  struct Id {
    absl::Time at;
    uint64_t sequence = 0;  // 0: none
    friend bool operator<(const Id& x, const Id& y) {
      return std::pair(x.at, x.sequence) < std::pair(y.at, y.sequence);
    }
  };

  Timer();
  ~Timer() { Stop(); }

  // After this has returned, no function runs.
  void Stop();

  Id Schedule(absl::Time at, absl::AnyInvocable<void()> function);
  // The function may be running, or have run, when this returns.
  void Cancel(const Id& id);

 private:
  void Loop();

  Mutex mutex_;
  CondVar wake_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  // The thread wakes at this time at the latest, so only an earlier function must wake it.
  absl::Time asleep_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  uint64_t next_sequence_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<Id, absl::AnyInvocable<void()>> due_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace gemmd
