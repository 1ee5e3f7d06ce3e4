// How long copies between devices take, from those that were made.
#pragma once

#include <array>
#include <cstdint>

#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/engine/store/matrix.h"

namespace gemmd {

// Thread-safe.
class CopyTimes {
 public:
  absl::Duration Estimate(CopyRoute route, uint64_t bytes) const;
  void Observe(CopyRoute route, uint64_t bytes, absl::Duration took);

 private:
  // Until copies were made: less than PCIe 4 and host memory carry, and a longer start than most
  // have, so that the first copies are made where they are worth much.
  static constexpr double kFirstBytesPerSecond = 8e9;
  static constexpr double kFirstOverheadSeconds = 100e-6;
  // A copy up to this size says how long any takes, a longer one how long its bytes take.
  static constexpr uint64_t kShortBytes = uint64_t{1} << 20;

  struct Route {
    double overhead_seconds = kFirstOverheadSeconds;
    double seconds_per_byte = 1 / kFirstBytesPerSecond;
    int short_copies = 0, long_copies = 0;  // that the means are over
  };

  mutable Mutex mutex_;
  std::array<Route, 2> routes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
