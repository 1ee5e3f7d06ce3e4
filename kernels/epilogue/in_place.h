// Bias and activation as a pass of its own, for the libraries' kernels.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "gemm/kernel.h"
#include "gemm/problem.h"

struct CUstream_st;

namespace gemm {

// Whether the problem has a bias or an activation.
constexpr bool HasBiasOrActivation(const Problem& problem) {
  return problem.bias != BiasAxis::kNone || problem.activation != Activation::kNone;
}

// Whether D is narrower than the sum. A pass over D itself would then round
// twice, so the product goes to f32 scratch first.
constexpr bool NeedsWideProduct(const Problem& problem) {
  return HasBiasOrActivation(problem) && problem.types.compute == Compute::kF32 &&
         (problem.types.d == DType::kF16 || problem.types.d == DType::kBF16);
}

// Scratch bytes of the wide product; 0 where none is needed.
size_t WideProductBytes(const Problem& problem);

// alpha * op(A) op(B) alone, in f32, into the scratch.
struct WideProduct {
  Problem problem;
  Operands operands;
};
WideProduct MakeWideProduct(const Problem& problem, const Operands& operands,
                            const Workspace& scratch);

// Enqueues D = act(W + beta * C + bias) over the wide product W, which may have
// more columns than D. D is f16, bf16 or f32.
absl::Status FinishWideProduct(const Problem& problem, const Operands& operands,
                               const WideProduct& wide, CUstream_st* stream);

// Enqueues D = act(D + bias); alpha and beta are not looked at. D holds
// alpha * op(A) op(B) + beta * C.
absl::Status ApplyBiasAndActivation(const Problem& problem, const Operands& operands,
                                    CUstream_st* stream);

// Enqueues D = act(beta * C + bias): the problem with alpha 0. A and B are not
// looked at.
absl::Status ApplyWithoutProduct(const Problem& problem, const Operands& operands,
                                 CUstream_st* stream);

}  // namespace gemm
