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

// The type of accumulators in scratch memory.
constexpr DType AccumulatorType(const Problem& problem) {
  if (problem.types.compute == Compute::kF64) return DType::kF64;
  if (problem.types.compute == Compute::kS32) return DType::kS32;
  return problem.types.compute == Compute::kF16 ? DType::kF16 : DType::kF32;
}

// Whether a library's product must leave its accumulators in scratch memory, for a pass
// that applies the epilogue. There are four reasons:
// - With a D narrower than the accumulators, some algorithms of cuBLAS and cuBLASLt round
//   the product to D's type before they add beta C.
// - A bias or an activation in a pass over D would round twice where D is narrower than
//   the accumulators. (A relu alone gives the same before and after the rounding.)
// - A library's product in f16 takes alpha and beta in f16, and rounds to f16 before the bias. Our
//   epilogue is in f32 (gemm/scalars.h), so such a product computes accumulators alone.
// - With integer accumulators, a library has no other D.
constexpr bool NeedsAccumulatorScratch(const Problem& problem) {
  switch (problem.types.compute) {
    case Compute::kF16:
      return HasBiasOrActivation(problem) || problem.alpha != 1 || problem.beta != 0;
    case Compute::kF32:
      return (problem.types.d == DType::kF16 || problem.types.d == DType::kBF16) &&
             (problem.beta != 0 || problem.bias != BiasAxis::kNone ||
              (problem.activation != Activation::kNone && problem.activation != Activation::kRelu));
    case Compute::kS32:
      return problem.types.d != DType::kS32;
    default:
      return false;
  }
}

// Bytes of the accumulators in scratch memory, of all products of a batch.
size_t AccumulatorBytes(const Problem& problem);
// The same; 0 where none are needed.
size_t AccumulatorScratchBytes(const Problem& problem);

// op(A) op(B) alone, into scratch memory.
struct AccumulatorProduct {
  Problem problem;
  Operands operands;
};
AccumulatorProduct MakeAccumulatorProduct(const Problem& problem, const Operands& operands,
                                          const Workspace& scratch);

// Enqueues D = act(alpha * S + beta * C + bias) over the accumulators S, which may have
// more columns than D. D is f16, bf16, f32, f64 or s32.
absl::Status FinishFromAccumulators(const Problem& problem, const Operands& operands,
                                    const AccumulatorProduct& accumulators, CUstream_st* stream);

// Enqueues D = act(D + bias), where D holds alpha * op(A) op(B) + beta * C. Ignores alpha
// and beta.
absl::Status ApplyBiasAndActivation(const Problem& problem, const Operands& operands,
                                    CUstream_st* stream);

}  // namespace gemm
