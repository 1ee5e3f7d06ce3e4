// A plan for one problem in cuBLASLt: descriptors, and an algorithm that its heuristic
// proposes. Making a plan takes tens of microseconds, using it none.
#pragma once

#include <cublasLt.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "gemm/problem.h"

namespace gemm {

// On Hopper, in 12.x and 13.x, algorithms that split k leave out its end if k is no
// multiple of the tile's: github.com/facebookexperimental/triton/pull/2767. If k is no
// multiple of this constant no such algorithm is chosen.
inline constexpr int64_t kLargestTileK = 128;

// The number of the heuristic's answers that can be chosen.
inline constexpr int kMaxLtAlgorithms = 8;

// All that the choice depends on.
struct LtPlanKey {
  int64_t m, n, k;
  int64_t lda, ldb, ldc, ldd;
  DType a, b, d;
  Compute compute;
  bool trans_a, trans_b;
  BiasAxis bias;
  Activation activation;
  int64_t batch;
  int64_t stride_a, stride_b, stride_c, stride_bias, stride_d;
  int64_t algorithm;  // its place among the heuristic's answers

  static LtPlanKey Of(const Problem& problem, const Operands& operands, int64_t algorithm);

  // The check takes the 0 that the compiler compares with for a pointer.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  friend auto operator<=>(const LtPlanKey&, const LtPlanKey&) = default;
};

// Plain data: cuBLASLt's own descriptors need no release.
struct LtPlan {
  cublasLtMatmulDescOpaque_t product;
  cublasLtMatrixLayoutOpaque_t a, b, c, d;
  cublasLtMatmulAlgo_t algorithm;
  // Whether the algorithm applies bias and activation itself.
  bool fused_epilogue = false;
  // How many products one call takes: a batch goes in as many calls as that needs.
  int64_t batch = 1;
};

// At most `count` plans in the heuristic's order, for one product of the problem. UNIMPLEMENTED
// where cuBLASLt has no algorithm for it.
absl::StatusOr<std::vector<LtPlan>> MakeLtPlans(cublasLtHandle_t handle, const Problem& problem,
                                                const Operands& operands, size_t workspace_bytes,
                                                int count);

// The plan at index `algorithm` of those; the last one if there are fewer. A batch gets the
// algorithm of the product alone, and so its bits, and takes as many products in a call as the
// algorithm does with that workspace.
absl::StatusOr<LtPlan> MakeLtPlan(cublasLtHandle_t handle, const Problem& problem,
                                  const Operands& operands, size_t workspace_bytes,
                                  int64_t algorithm);

// Makes a plan with a fused bias read this launch's vector.
absl::Status SetBias(LtPlan& plan, const void* bias);

// Makes a plan take this many products in a call, of the strides that it has.
absl::Status SetBatch(LtPlan& plan, int64_t batch);

}  // namespace gemm
