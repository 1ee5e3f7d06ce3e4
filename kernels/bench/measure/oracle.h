// The right values of some elements of a product, and of all of a product of -1, 0 and 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gemm/problem.h"
#include "gemm/reference.h"
#include "kernels/bench/backend/backend.h"
#include "kernels/bench/measure/operand_sets.h"
#include "kernels/bench/result/row.h"

namespace gemm::bench {

// Checks the elements of D at the crossings of some rows and columns: the first ones, the last ones
// and some drawn at random.
class Oracle {
 public:
  // Reads operands back from the device and computes the elements in double precision, for
  // up to `lines` rows and as many columns. A large k takes fewer, but at least two, so that memory
  // and time are bounded. Calls `step` before each line and element; an error that it returns ends
  // the call. `known`: the assumption about the elements of A and B.
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

// A product of -1, 0 and 1: only the exact result is right. The error bound of drawn elements hides
// small defects of a large k; this hides none.
class ExactCheck {
 public:
  // Draws the operands and computes the exact result, for up to `lines` rows and columns of D, at
  // most eight. If there is no memory, or k is too large for the types, missing() says so. Calls
  // `step` as Oracle::Prepare does.
  absl::Status Prepare(Backend& backend, OperandSets& sets, const Problem& problem, int lines,
                       const std::function<absl::Status()>& step);

  // Why no product is compared exactly; empty if one is.
  const std::string& missing() const { return missing_; }

  // The kernel's operands. D is that of the first operand set.
  const Operands& operands() const { return operands_; }

  // Compares D where the lines cross, after all work that the backend was given. of_bound is 0,
  // or infinite.
  absl::StatusOr<SampledError> Compare(Backend& backend) const { return oracle_.Compare(backend); }

 private:
  Oracle oracle_;
  Operands operands_;
  std::string missing_;
};

}  // namespace gemm::bench
