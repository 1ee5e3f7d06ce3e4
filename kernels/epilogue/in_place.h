// The epilogue as a pass of its own, for the libraries' kernels.
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

// The type in which the sums over k lie apart from D.
constexpr DType SumType(const Problem& problem) {
  return problem.types.compute == Compute::kF16 ? DType::kF16 : DType::kF32;
}

// Whether the sums have to go to scratch, and the rest to a pass over that. A pass
// over D itself would round twice where D is narrower than the sums, but for a relu
// alone, which may come before the rounding or after it. And what
// computes in f16 takes alpha and beta in f16 and rounds to f16 before the bias:
// our epilogue is in f32 (gemm/scalars.h), so there only bare sums are asked for.
constexpr bool NeedsSumsApart(const Problem& problem) {
  switch (problem.types.compute) {
    case Compute::kF16:
      return HasBiasOrActivation(problem) || problem.alpha != 1 || problem.beta != 0;
    case Compute::kF32:
      return (problem.types.d == DType::kF16 || problem.types.d == DType::kBF16) &&
             HasBiasOrActivation(problem) &&
             !(problem.bias == BiasAxis::kNone && problem.activation == Activation::kRelu);
    default:
      return false;
  }
}

// Scratch bytes of the sums; 0 where none are needed.
size_t SumsApartBytes(const Problem& problem);

// op(A) op(B) alone, into the scratch.
struct SumsApart {
  Problem problem;
  Operands operands;
};
SumsApart MakeSumsApart(const Problem& problem, const Operands& operands, const Workspace& scratch);

// Enqueues D = act(alpha * S + beta * C + bias) over the sums S, which may have
// more columns than D. D is f16, bf16 or f32.
absl::Status FinishSumsApart(const Problem& problem, const Operands& operands,
                             const SumsApart& sums, CUstream_st* stream);

// Enqueues D = act(D + bias); alpha and beta are not looked at. D holds
// alpha * op(A) op(B) + beta * C.
absl::Status ApplyBiasAndActivation(const Problem& problem, const Operands& operands,
                                    CUstream_st* stream);

}  // namespace gemm
