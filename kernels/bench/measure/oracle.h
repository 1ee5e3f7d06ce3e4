// The right values of some elements of a product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "gemm/problem.h"
#include "gemm/reference.h"
#include "kernels/bench/backend/backend.h"
#include "kernels/bench/result/row.h"

namespace gemm::bench {

// Checks the elements of D where some rows cross some columns: the first ones, the last
// ones and some drawn at random.
class Oracle {
 public:
  // Reads operands back from the device and computes the elements in double precision, for
  // up to `lines` rows and as many columns. Where k is large there are fewer, but at least
  // two, so that memory and time are bounded. Calls `step` before each line and element; an
  // error that it returns ends the call. `known` is of the elements of A and B.
  absl::Status Prepare(Backend& backend, const Problem& problem, const Operands& device,
                       Elements known, int lines, const std::function<absl::Status()>& step);

  // Compares D where the lines cross, after all work that the backend was given.
  absl::StatusOr<SampledError> Compare(Backend& backend) const;

 private:
  Problem problem_;
  Operands device_;
  std::vector<int64_t> rows_, cols_;  // ascending
  std::vector<Expected> expected_;    // row by row
};

}  // namespace gemm::bench
