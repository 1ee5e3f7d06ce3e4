// The clock of deadlines, times to live and durations.
#pragma once

#include <atomic>
#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace gemmd {

inline absl::Time SystemSteadyNow() {
  using Clock = std::chrono::steady_clock;
  struct Start {
    absl::Time wall;
    Clock::time_point steady;
  };
  static const Start start{absl::Now(), Clock::now()};
  return start.wall + absl::FromChrono(Clock::now() - start.steady);
}

// What SteadyNow() reads. Only tests set it, to a clock that moves when they say
// (tests/base/test_clock.h).
inline std::atomic<absl::Time (*)()> steady_clock_source{&SystemSteadyNow};

// A monotonic clock, which does not step when the wall clock is set. The two agree when
// the process starts. All times that are scheduled, waited for or subtracted are of this
// clock; only times for people are wall-clock times.
inline absl::Time SteadyNow() { return steady_clock_source.load(std::memory_order_relaxed)(); }

// Convert between this clock and the wall clock, with their present difference. Infinite
// times stay infinite.
inline absl::Time ToWall(absl::Time steady) { return absl::Now() + (steady - SteadyNow()); }
inline absl::Time FromWall(absl::Time wall) { return SteadyNow() + (wall - absl::Now()); }

}  // namespace gemmd
