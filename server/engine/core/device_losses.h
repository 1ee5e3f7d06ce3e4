// When work on a device counts as hung, and what the engine does when a device is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gemm/kernel.h"
#include "gemm/problem.h"
#include "server/base/mutex.h"
#include "server/base/timer.h"
#include "server/engine/bounds/stats.h"
#include "server/engine/core/core.h"
#include "server/engine/store/matrix.h"

namespace gemmd {

// Every kernel of the kind is faster than this, in operations a second, also on a busy machine. On
// a host the slowest is the reference with subnormal operands, at 4e7.
inline constexpr double kSlowestCuda = 1e10;
inline constexpr double kSlowestHost = 1e7;

// The work of a launch in operations: those of its products, and some for each element, which may
// be generated.
double WorkOf(const gemm::Problem& problem);
double WorkOf(const Shape& generated);

// On a GPU a launch takes at most this many times as long as such launches did. It may run at a low
// clock, beside another process, or with slow launch parameters. On a host this bounds nothing:
// operands may make a kernel slower than that.
inline constexpr int kMostOfMeasured = 64;

// How long a launch of so many operations takes at most. `measured`: such launches before; zero
// where that is not known.
absl::Duration LongestTime(gemm::Target target, double operations, absl::Duration measured);

// How long work may take before it counts as hung. That is --job-timeout and, for each stream of
// the device, `longest`: the longest time of the work under way, which may run first on every
// stream.
absl::Duration HangLimit(absl::Duration job_timeout, int streams, absl::Duration longest);

// How long work has after its limit, before its device is lost: 5 s, or the limit where that
// is shorter. The limit counts time in which the process stood still, after which the timer
// and the end of the work are both due.
absl::Duration HangGrace(absl::Duration limit);

// Looks at the devices' health a few times a second, since an error may be found by any
// thread and under any lock. A device that is lost gets no new jobs from that moment on
// (EngineCore::DevicesByLoad). Here its resident matrices are moved to their replicas, or
// named as lost, and the jobs and transfers that it has are ended. Thread-safe.
class DeviceLosses {
 public:
  // `core` must outlive this.
  explicit DeviceLosses(EngineCore& core);

  // Looks at once, and from then on by the engine's timer.
  void Watch();
  // Deals with devices that were lost since the last call.
  void Look();
  // Work that takes at most so long by itself begins on a device: unless it ends within HangLimit
  // and HangGrace, the device is given up. Returns the ticket for EndWork.
  uint64_t BeginWork(size_t device_index, absl::Duration longest);
  void EndWork(size_t device_index, uint64_t ticket);
  // The timer's function. The first call of a ticket gives the work its grace, the second one
  // gives the device up. Does nothing where the work has ended meanwhile.
  void OnLate(size_t device_index, uint64_t ticket);

  DeviceLossStats stats(size_t device_index) const;

 private:
  // The work of one hang guard.
  struct Work {
    absl::Duration longest;         // as in BeginWork
    absl::Duration longest_beside;  // of all that was under way beside it, and its own
    absl::Time begun;
    Timer::Id due;  // OnLate
    bool late = false;
  };

  // OnLate at that time.
  void Arm(size_t device_index, uint64_t ticket, Work& work, absl::Time at)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration LimitOf(size_t device_index, const Work& work) const;
  void Deal(size_t device_index, const absl::Status& why);

  EngineCore& core_;
  mutable Mutex mutex_;
  std::vector<DeviceLossStats> stats_ ABSL_GUARDED_BY(mutex_);  // by device
  // Indexed by device and ticket.
  std::vector<std::map<uint64_t, Work>> under_way_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<bool> dealt_with_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
