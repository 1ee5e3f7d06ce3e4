// The clock of deadlines, times to live and durations, and durations in sentences.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

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

// The source of SteadyNow(). Only tests set it, to a clock that moves when they say
// (tests/base/test_clock.h).
inline std::atomic<absl::Time (*)()> steady_clock_source{&SystemSteadyNow};

// A monotonic clock, which does not step when the wall clock is set. The two agree when
// the process starts. All times that are scheduled, waited for or subtracted are of this
// clock; only times for people are wall-clock times.
inline absl::Time SteadyNow() { return steady_clock_source.load(std::memory_order_relaxed)(); }

// The wall clock. absl::Now() is another one for two seconds after it was set: it counts cycles
// from its last sample.
inline absl::Time WallNow() { return absl::FromChrono(std::chrono::system_clock::now()); }

// With the present difference of the two clocks. Infinite times stay infinite.
inline absl::Time ToWall(absl::Time steady) { return WallNow() + (steady - SteadyNow()); }

// To three digits or so: "1.23s", "12.34ms", "150ns".
inline std::string Rounded(absl::Duration time) {
  const absl::Duration unit = time >= absl::Seconds(1)        ? absl::Milliseconds(10)
                              : time >= absl::Milliseconds(1) ? absl::Microseconds(10)
                                                              : absl::Nanoseconds(10);
  return absl::FormatDuration(absl::Trunc(time, unit));
}

}  // namespace gemmd
