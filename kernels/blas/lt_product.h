// A product by cuBLASLt as a plan says.
#pragma once

#include "absl/status/status.h"
#include "gemm/kernel.h"
#include "kernels/blas/lt_plan.h"

namespace gemm {

// Enqueues the product, with what the plan has fused. Problem and operands may
// be others than the launch's, of the shape and types the plan was made for.
absl::Status RunLtPlan(const Launch& launch, const Problem& problem, const Operands& operands,
                       LtPlan& plan);

// The launch of a row: the heuristic's first choice that is right (lt_plan.h), with
// bias and activation in it or behind it. Takes AccumulatorScratchBytes of scratch.
absl::Status LaunchLt(const Launch& launch);

}  // namespace gemm
