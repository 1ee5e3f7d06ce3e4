// Some elements of a product as they should be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "gemm/problem.h"
#include "gemm/reference.h"
#include "kernels/bench/backend.h"
#include "kernels/bench/row.h"

namespace gemm::bench {

// Knows D where some rows cross some columns: the first, the last and some drawn.
class Oracle {
 public:
  // Reads the operands back from the device and works the product out in double
  // precision, for `lines` rows and as many columns.
  absl::Status Prepare(Backend& backend, const Problem& problem, const Operands& device, int lines);

  // Looks at D, after everything that was asked of the backend.
  absl::StatusOr<SampledError> Compare(Backend& backend) const;

 private:
  Problem problem_;
  Operands device_;
  std::vector<int64_t> rows_, cols_;  // ascending
  std::vector<Expected> expected_;    // row by row
};

}  // namespace gemm::bench
