// Measures how long the server has waited for a client.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "server/base/clock.h"

namespace gemmd {

// SteadyNow() less the time in which gRPC's threads were behind. A client is not late
// while the server itself does not get to it.
class ServingClock {
 public:
  static absl::Time Now() { return SteadyNow() - absl::Nanoseconds(behind_.load()); }
  // Leaves out the last `behind`. One thread of a server calls this.
  static void StandStill(absl::Duration behind) { behind_ += absl::ToInt64Nanoseconds(behind); }

 private:
  static inline std::atomic<int64_t> behind_{0};
};

}  // namespace gemmd
