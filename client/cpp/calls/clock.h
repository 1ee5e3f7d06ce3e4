// The clock of deadlines and waits.
#pragma once

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpc/support/time.h"

namespace gemmd::client {

// A monotonic clock, which does not step when the wall clock is set. The two agree when the process
// first asks.
inline absl::Time SteadyNow() {
  using Clock = std::chrono::steady_clock;
  struct Start {
    absl::Time wall;
    Clock::time_point steady;
  };
  static const Start start{absl::Now(), Clock::now()};
  return start.wall + absl::FromChrono(Clock::now() - start.steady);
}

// A finite time of that clock as gRPC takes it. Not by way of the wall clock, which is another one
// for absl::Now() than for gRPC for two seconds after it was set.
inline gpr_timespec GrpcTime(absl::Time steady) {
  const timespec left = absl::ToTimespec(steady - SteadyNow());
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), {.tv_sec = left.tv_sec,
                                                     .tv_nsec = static_cast<int32_t>(left.tv_nsec),
                                                     .clock_type = GPR_TIMESPAN});
}

}  // namespace gemmd::client
