// cuBLASLt's algorithms for one problem, for benchmarks.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "gemm/kernel.h"

namespace gemm {

// At most `count` algorithms in the heuristic's order (lt_plan.h), each as a launch like
// a row's. Only the leading dimensions of `operands` matter. A launch takes the problem that it was
// made for. UNIMPLEMENTED if cuBLASLt has no algorithm.
absl::StatusOr<std::vector<std::function<absl::Status(const Launch&)>>> LtAlgorithms(
    Libraries& libraries, const Problem& problem, const Operands& operands, int count);

}  // namespace gemm
