// The choice of `auto`, as a row beside the measured ones.
#pragma once

#include "absl/types/span.h"
#include "gemm/estimates.h"
#include "gemm/kernel.h"
#include "kernels/bench/result/row.h"

namespace gemm::bench {

// Chooses as a server without a tuning table does.
class AutoRows {
 public:
  AutoRows(const DeviceEstimates& estimates, const DeviceCaps& device)
      : estimates_(estimates), device_(device) {}

  // For the rows of one shape, types and layout: a row kAuto with the figures of the kernel that
  // `auto` takes. Its note names that kernel. Not measured if the kernel was not.
  Row For(absl::Span<const Row> rows) const;

 private:
  const Kernel* Choose(const Problem& problem) const;  // null: there is none

  const DeviceEstimates estimates_;
  const DeviceCaps device_;
};

}  // namespace gemm::bench
