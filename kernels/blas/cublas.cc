// The table of the cuBLAS family. Row-major products through the usual swap:
// column-major D' = op(B)' op(A)'.
#include <cuda_runtime_api.h>

#include <limits>

#include "kernels/blas/libraries.h"
#include "kernels/blas/lt_plan.h"
#include "kernels/blas/types.h"
#include "kernels/blas/vocabulary.h"
#include "kernels/core/cuda_status.h"
#include "kernels/core/families.h"
#include "kernels/epilogue/in_place.h"

namespace gemm {
namespace {

// cuBLAS reads C where it writes D: puts C there first.
absl::Status CopyCToD(const Problem& p, const Operands& o, cudaStream_t stream) {
  const size_t size = SizeOf(p.types.d);
  const size_t row = static_cast<size_t>(p.n) * size;
  const size_t c_pitch = static_cast<size_t>(o.ldc) * size;
  const size_t d_pitch = static_cast<size_t>(o.ldd) * size;
  // The largest pitch of a 2D copy; there are few rows beyond it.
  constexpr size_t kMaxPitch = std::numeric_limits<int32_t>::max();
  if (c_pitch <= kMaxPitch && d_pitch <= kMaxPitch) {
    return CudaStatus(cudaMemcpy2DAsync(o.d, d_pitch, o.c, c_pitch, row, static_cast<size_t>(p.m),
                                        cudaMemcpyDeviceToDevice, stream),
                      "copy of C to D");
  }
  for (size_t i = 0; i < static_cast<size_t>(p.m); ++i) {
    const absl::Status status =
        CudaStatus(cudaMemcpyAsync(static_cast<char*>(o.d) + i * d_pitch,
                                   static_cast<const char*>(o.c) + i * c_pitch, row,
                                   cudaMemcpyDeviceToDevice, stream),
                   "copy of a row of C to D");
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// D = alpha * op(A) op(B) + beta * C, in one call of cuBLAS.
absl::Status OneProduct(const Launch& launch, const Problem& p, const Operands& o) {
  const Scalars scalars = MakeScalars(p);
  if (p.beta != 0 && o.c != o.d) {
    const absl::Status status = CopyCToD(p, o, launch.stream);
    if (!status.ok()) return status;
  }
  return CublasStatus(
      cublasGemmEx_64(launch.libraries->cublas(), CublasOp(p.trans_b), CublasOp(p.trans_a), p.n,
                      p.m, p.k, scalars.alpha, o.b, CublasType(p.types.b), o.ldb, o.a,
                      CublasType(p.types.a), o.lda, scalars.beta, o.d, CublasType(p.types.d), o.ldd,
                      CublasCompute(p.types.compute), CUBLAS_GEMM_DEFAULT),
      "cublasGemmEx_64");
}

// The end of k that is multiplied on its own. If cuBLAS splits k, it may leave out the part beyond
// the last whole tile (lt_plan.h), and it does not say whether it splits.
int64_t EndOfK(const Problem& p) { return p.k > kLargestTileK ? p.k % kLargestTileK : 0; }

// As OneProduct, but all of k. C and D hold partial sums.
absl::Status Product(const Launch& launch, const Problem& p, const Operands& o) {
  const int64_t end_of_k = EndOfK(p);
  if (end_of_k == 0) return OneProduct(launch, p, o);
  Problem part = p;
  part.k = p.k - end_of_k;
  const absl::Status status = OneProduct(launch, part, o);
  if (!status.ok()) return status;
  const auto advanced = [](const void* data, int64_t elements, DType type) {
    return static_cast<const char*>(data) + elements * static_cast<int64_t>(SizeOf(type));
  };
  Operands end = o;
  end.a = advanced(o.a, p.trans_a ? part.k * o.lda : part.k, p.types.a);
  end.b = advanced(o.b, p.trans_b ? part.k : part.k * o.ldb, p.types.b);
  end.c = o.d;
  end.ldc = o.ldd;
  part.k = end_of_k;
  part.beta = 1;
  return OneProduct(launch, part, end);
}

// True also if D would hold partial sums less precisely than the accumulators.
bool NeedsScratch(const Problem& p) {
  return NeedsAccumulatorScratch(p) ||
         (EndOfK(p) > 0 && SizeOf(p.types.d) < SizeOf(AccumulatorType(p)));
}

size_t ScratchBytes(const Problem& p) { return NeedsScratch(p) ? AccumulatorBytes(p) : 0; }

absl::Status LaunchCublas(const Launch& launch) {
  const Problem& p = launch.problem;
  const Operands& o = launch.operands;
  if (NeedsScratch(p)) {
    const AccumulatorProduct accumulators = MakeAccumulatorProduct(p, o, launch.workspace);
    const absl::Status status = Product(launch, accumulators.problem, accumulators.operands);
    return status.ok() ? FinishFromAccumulators(p, o, accumulators, launch.stream) : status;
  }
  const absl::Status status = Product(launch, p, o);
  if (!status.ok() || !HasBiasOrActivation(p)) return status;
  return ApplyBiasAndActivation(p, o, launch.stream);
}

constexpr Kernel CublasRow(absl::string_view name, absl::string_view summary,
                           absl::Span<const Types> types, Capability capability) {
  return {
      .name = name,
      .family = "cublas",
      .summary = summary,
      .capability = capability,
      .types = types,
      // Above cuBLASLt: on typical sizes of layers, the first answer of cuBLASLt's heuristic takes
      // up to a hundred times as long (docs/results/estimates.md).
      .auto_rank = 95,
      .workspace_bytes = ScratchBytes,
      .launch = LaunchCublas,
  };
}

constexpr Kernel kCublasRows[] = {
    CublasRow("cublas_f64", "cublasGemmEx in f64", kBlasF64, {}),
    CublasRow("cublas_f32", "cublasGemmEx in f32", kBlasF32, {}),
    CublasRow("cublas_tf32", "cublasGemmEx, f32 multiplied as TF32", kBlasTF32, {.min = 80}),
    CublasRow("cublas_f16", "cublasGemmEx, f16 summed in f32", kBlasF16, {}),
    CublasRow("cublas_f16acc16", "cublasGemmEx, f16 summed in f16", kBlasF16Acc16, {}),
    CublasRow("cublas_bf16", "cublasGemmEx, bf16 summed in f32", kBlasBF16, {.min = 80}),
};

}  // namespace

absl::Span<const Kernel> CublasRows() { return kCublasRows; }

}  // namespace gemm
