// What a device counts of the energy that it takes.
#pragma once

#include "absl/status/statusor.h"

namespace gemm::bench {

// Not thread-safe.
class EnergyCounter {
 public:
  virtual ~EnergyCounter() = default;

  // Joules that the whole device has taken since some moment in the past, whoever used it. The
  // device updates it only every few tens of milliseconds. An error says why it cannot be read.
  virtual absl::StatusOr<double> Joules() = 0;
};

}  // namespace gemm::bench
