// A product of -1, 0 and 1, of which nothing but the exact result is right. The bound of drawn
// elements hides small defects of a large k; this hides none.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gemm/problem.h"
#include "kernels/bench/backend/backend.h"
#include "kernels/bench/measure/operand_sets.h"
#include "kernels/bench/measure/oracle.h"
#include "kernels/bench/result/row.h"

namespace gemm::bench {

class ExactCheck {
 public:
  // Draws the operands and works out what is right, for up to `lines` rows and columns of D,
  // at most eight. Where there is no memory, or k is too large for the types, missing() says so.
  // Calls `step` as Oracle::Prepare does.
  absl::Status Prepare(Backend& backend, OperandSets& sets, const Problem& problem, int lines,
                       const std::function<absl::Status()>& step);

  // Why no product is compared exactly; empty where it is.
  const std::string& missing() const { return missing_; }

  // What the kernel is to compute. D is that of the first operand set.
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
