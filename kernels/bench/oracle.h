// Some elements of a product as they should be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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
  // precision, for up to `lines` rows and as many columns: fewer where k is large,
  // but two of each, so that the memory it takes and its time are bounded by those
  // of two lines of k. `step` is called before each line and each element, and ends
  // it with the error it returns.
  absl::Status Prepare(Backend& backend, const Problem& problem, const Operands& device, int lines,
                       const std::function<absl::Status()>& step);

  // Looks at D where the lines cross, after everything that was asked of the
  // backend.
  absl::StatusOr<SampledError> Compare(Backend& backend) const;

 private:
  Problem problem_;
  Operands device_;
  std::vector<int64_t> rows_, cols_;  // ascending
  std::vector<Expected> expected_;    // row by row
};

}  // namespace gemm::bench
