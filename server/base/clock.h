// The clock that deadlines, times to live and durations are counted on.
#pragma once

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace gemmd {

// A time that never steps, whatever is done to the wall clock; the two agree when the
// process starts. Times that are scheduled, waited for or subtracted are all of this
// clock; only what people read is of the wall's.
inline absl::Time SteadyNow() {
  using Clock = std::chrono::steady_clock;
  struct Start {
    absl::Time wall;
    Clock::time_point steady;
  };
  static const Start start{absl::Now(), Clock::now()};
  return start.wall + absl::FromChrono(Clock::now() - start.steady);
}

// What the wall clock says, as it goes now, when `steady` comes, and the other way
// round. The infinite ones stay what they are.
inline absl::Time ToWall(absl::Time steady) { return absl::Now() + (steady - SteadyNow()); }
inline absl::Time FromWall(absl::Time wall) { return SteadyNow() + (wall - absl::Now()); }

}  // namespace gemmd
