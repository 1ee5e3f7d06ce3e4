// Which device a job goes to: the rule, and the work that was placed on each.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/base/mutex.h"

namespace gemmd {

// One device for a job that is to be placed.
struct Placement {
  size_t device_index = 0;
  absl::Duration backlog;      // until the device has done what was placed on it before
  absl::Duration copy;         // until the operands that it lacks are there
  absl::Duration run;          // of the job by itself
  uint64_t missing_bytes = 0;  // of those operands

  // Copies are made while the device works.
  absl::Duration end() const { return std::max(backlog, copy) + run; }
};

// Sorts the devices: first the one where the job ends soonest, of equal ones the one that lacks the
// least. Others that are equal keep their order.
void RankByEnd(std::vector<Placement>& devices);

// The work that was placed on one device: of jobs that are in transfer, wait or run. Thread-safe.
// Must outlive its shares.
class PlacedWork {
 public:
  // A job's part of it, until the job has left the device. Empty when moved from.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept { *this = std::move(other); }
    Share& operator=(Share&& other) noexcept;
    ~Share() { End(); }
    // The job runs from now on. At most once.
    void Begin();
    void End();

   private:
    friend class PlacedWork;
    PlacedWork* work_ = nullptr;
    absl::Duration time_;
    bool quick_ = false;
    bool running_ = false;
  };

  // A job that will keep the device busy for so long by itself. Quick ones need not wait for
  // others where the device has streams for them alone.
  Share Add(absl::Duration time, bool quick);
  // Until the device has done all of it, as long as no more is added. Of quick jobs alone where
  // `quick`.
  absl::Duration backlog(bool quick) const;

 private:
  // Of the quick jobs, or of the others.
  struct Lane {
    absl::Duration placed;
    absl::Duration running;  // the part of `placed` whose jobs run
    absl::Duration done;     // the time that `running` has had
  };
  void Pass(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::array<Lane, 2> lanes_ ABSL_GUARDED_BY(mutex_);  // others, quick
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
