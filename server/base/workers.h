// Threads for what gRPC's own threads, or a device's, never do: copies of payload, answers.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/base/waiting.h"

namespace gemmd {

// A FIFO of functions for a fixed number of threads. Thread-safe. The user bounds its
// length: each function that copies holds a staging block, each that answers a job.
class Workers {
 public:
  // Debuggers and `top -H` show the threads by `name`. After a prompt function one of those without
  // work looks for it for `spin` before it sleeps: to wake a thread takes tens of microseconds, and
  // its waker a few.
  Workers(std::string name, int threads, absl::Duration spin = absl::ZeroDuration());
  ~Workers() { Stop(); }

  // Runs all scheduled functions, then ends the threads. Call from one thread.
  void Stop();

  // After Stop the function runs at once, on the caller's thread.
  void Schedule(absl::AnyInvocable<void()> function, Urgency urgency = Urgency::kPrompt);

 private:
  struct Scheduled {
    absl::AnyInvocable<void()> function;
    Urgency urgency = Urgency::kPrompt;
  };

  void Loop();
  // The next function, for a thread whose last one had that urgency; null at the end.
  Scheduled Next(Urgency last);
  // Waits for a function, awake.
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::chrono::nanoseconds spin_;
  Mutex mutex_;
  CondVar wake_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  int asleep_ ABSL_GUARDED_BY(mutex_) = 0;      // threads that wait for a function
  bool looks_ ABSL_GUARDED_BY(mutex_) = false;  // one more does, awake
  // There is something for that one: a function, or the end. It reads this without the lock.
  std::atomic<bool> found_{false};
  std::deque<Scheduled> functions_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace gemmd
