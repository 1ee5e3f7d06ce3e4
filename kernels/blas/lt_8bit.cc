#include "kernels/blas/lt_8bit.h"

#include "kernels/blas/libraries.h"
#include "kernels/blas/lt_plan.h"
#include "kernels/blas/lt_product.h"
#include "kernels/epilogue/in_place.h"
#include "kernels/transpose/operands.h"
#include "kernels/transpose/padded.h"

namespace gemm {
namespace {

constexpr LoadLayout kLayout{.trans_a = false, .trans_b = true};
constexpr int64_t kMultipleN = 16;
constexpr size_t kScratchAlignment = 256;

constexpr int64_t RoundUp(int64_t size, int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}
constexpr int64_t PaddedN(int64_t n) { return RoundUp(n, kMultipleN); }
constexpr int64_t PaddedK(int64_t k) { return RoundUp(k, kLargestTileK); }

size_t Aligned(int64_t bytes) {
  return (static_cast<size_t>(bytes) + kScratchAlignment - 1) / kScratchAlignment *
         kScratchAlignment;
}

// The launch's scratch memory from front to back.
struct PaddedScratch {
  size_t transposes = 0;
  size_t padded_a = 0;  // m rows of padded k
  size_t padded_b = 0;  // padded n rows of padded k
  size_t wide = 0;      // m rows of n accumulators, padded if B is

  size_t total() const { return transposes + padded_a + padded_b + wide; }
};

PaddedScratch ScratchFor(const Problem& p) {
  const bool pad_k = PaddedK(p.k) != p.k, pad_n = PaddedN(p.n) != p.n;
  return {
      .transposes = Aligned(static_cast<int64_t>(TransposeScratchBytes(p, kLayout))),
      .padded_a = pad_k ? Aligned(p.m * PaddedK(p.k)) : 0,
      .padded_b = pad_k || pad_n ? Aligned(PaddedN(p.n) * PaddedK(p.k)) : 0,
      .wide = pad_n || NeedsAccumulatorScratch(p)
                  ? Aligned(p.m * PitchBytes(PaddedN(p.n), AccumulatorType(p)))
                  : 0,
  };
}

// Pads the operands of `transposed` into `scratch`, where they need it. The
// problem's n does not change.
absl::Status PadOperands(const PaddedScratch& sizes, std::byte* scratch, CUstream_st* stream,
                         TransposedProduct& transposed) {
  Problem& p = transposed.problem;
  Operands& o = transposed.operands;
  const int64_t k = PaddedK(p.k);
  if (sizes.padded_a > 0) {
    const absl::Status status = CopyPadded(
        {.data = o.a, .rows = p.m, .row_bytes = p.k, .pitch = o.lda}, scratch, p.m, k, stream);
    if (!status.ok()) return status;
    o.a = scratch;
    o.lda = k;
  }
  if (sizes.padded_b > 0) {
    std::byte* const b = scratch + sizes.padded_a;
    const absl::Status status = CopyPadded(
        {.data = o.b, .rows = p.n, .row_bytes = p.k, .pitch = o.ldb}, b, PaddedN(p.n), k, stream);
    if (!status.ok()) return status;
    o.b = b;
    o.ldb = k;
  }
  p.k = k;
  return absl::OkStatus();
}

// The product with n padded into scratch of accumulators, then D from its columns.
absl::Status LaunchPaddedN(const Launch& launch) {
  Problem padded = launch.problem;
  padded.n = PaddedN(padded.n);
  const AccumulatorProduct accumulators =
      MakeAccumulatorProduct(padded, launch.operands, launch.workspace);
  const absl::StatusOr<LtPlan*> plan =
      launch.libraries->PlanFor(accumulators.problem, accumulators.operands, AlgorithmOf(launch));
  if (!plan.ok()) return plan.status();
  const absl::Status status =
      RunLtPlan(launch, accumulators.problem, accumulators.operands, **plan);
  if (!status.ok()) return status;
  return FinishFromAccumulators(launch.problem, launch.operands, accumulators, launch.stream);
}

}  // namespace

size_t Lt8BitWorkspaceBytes(const Problem& problem) { return ScratchFor(problem).total(); }

absl::Status LaunchLt8Bit(const Launch& launch) {
  const PaddedScratch sizes = ScratchFor(launch.problem);
  absl::StatusOr<TransposedProduct> transposed = TransposeOperands(launch, kLayout);
  if (!transposed.ok()) return transposed.status();
  std::byte* const scratch = static_cast<std::byte*>(launch.workspace.data) + sizes.transposes;
  const absl::Status padded = PadOperands(sizes, scratch, launch.stream, *transposed);
  if (!padded.ok()) return padded;
  const Launch product{.problem = transposed->problem,
                       .operands = transposed->operands,
                       .workspace = {scratch + sizes.padded_a + sizes.padded_b, sizes.wide},
                       .params = launch.params,
                       .stream = launch.stream,
                       .libraries = launch.libraries};
  const bool pad_n = PaddedN(transposed->problem.n) != transposed->problem.n;
  return pad_n ? LaunchPaddedN(product) : LaunchLt(product);
}

}  // namespace gemm
