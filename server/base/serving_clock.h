// Measures how long the server has waited for a client.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "server/base/clock.h"

namespace gemmd {

// SteadyNow() less what WaitWatch (server/rpc/watch) leaves out of the time in which
// gRPC's threads were behind. A client is not late while the server itself does not get to it.
class ServingClock {
 public:
  static absl::Time Now() { return SteadyNow() - absl::Nanoseconds(left_out_.load()); }
  // Sets the clock back by `time`, which has passed but does not count. One thread calls this.
  static void LeaveOut(absl::Duration time) { left_out_ += absl::ToInt64Nanoseconds(time); }

 private:
  static inline std::atomic<int64_t> left_out_{0};
};

}  // namespace gemmd
