// Runs a product by cuBLASLt.
#pragma once

#include "absl/status/status.h"
#include "gemm/kernel.h"
#include "kernels/blas/lt_plan.h"

namespace gemm {

// Enqueues the products, and the epilogue as far as the plan fuses it. Problem and operands
// have the shape and types of the plan; they may differ from the launch's. With a Launch::piece,
// each piece has some of the plan's calls. Work that must follow all of them waits for the last
// piece.
absl::Status RunLtPlan(const Launch& launch, const Problem& problem, const Operands& operands,
                       LtPlan& plan);

// The index of the heuristic's answer that a row takes: its only launch parameter.
inline int64_t AlgorithmOf(const Launch& launch) { return launch.params[0]; }

// The launch of a row: that answer of the heuristic's (lt_plan.h), with bias
// and activation fused or in a pass of their own. Needs AccumulatorScratchBytes.
absl::Status LaunchLt(const Launch& launch);

}  // namespace gemm
