// A catalogue of two kernels, and two methods: the values of labels.
#pragma once

#include <array>

#include "server/telemetry/metrics.h"

namespace gemmd {

inline const gemm::Kernel kFastKernel{.name = "fast_f32", .family = "fast"};
inline const gemm::Kernel kSlowKernel{.name = "slow", .family = "slow"};
inline const std::array<const gemm::Kernel*, 2> kFakeCatalogue{&kFastKernel, &kSlowKernel};

inline MetricsOptions FakeMetricsOptions() {
  return {.version = "1.2.3",
          .commit = "abc123",
          .cuda = "",
          .catalogue = kFakeCatalogue,
          .methods = {"MultiplyUnary", "Benchmark"}};
}

}  // namespace gemmd
