// The table of the cuBLASLt family: one of the heuristic's answers for each problem, with
// the bias in its epilogue where that is right.
#include "kernels/blas/lt_8bit.h"
#include "kernels/blas/lt_product.h"
#include "kernels/blas/types.h"
#include "kernels/core/families.h"
#include "kernels/epilogue/in_place.h"

namespace gemm {
namespace {

// The default is the heuristic's first answer.
constexpr ParamSpec kLtParams[] = {
    {.name = "algorithm",
     .summary = "which of the algorithms that cuBLASLt proposes, its favourite first; beyond the "
                "last: the last",
     .min = 0,
     .max = kMaxLtAlgorithms - 1,
     .default_value = 0},
};

constexpr Kernel CublasLtRow(absl::string_view name, absl::string_view summary,
                             absl::Span<const Types> types, Capability capability) {
  return {
      .name = name,
      .family = "cublaslt",
      .summary = summary,
      .capability = capability,
      .types = types,
      .params = kLtParams,
      .auto_rank = 90,
      .batches = true,
      .workspace_bytes = AccumulatorScratchBytes,
      .launch = LaunchLt,
  };
}

constexpr Kernel Row8Bit(absl::string_view name, absl::string_view summary,
                         absl::Span<const Types> types, Capability capability) {
  Kernel row = CublasLtRow(name, summary, types, capability);
  row.batches = false;  // its padded copies are of one product
  row.workspace_bytes = Lt8BitWorkspaceBytes;
  row.launch = LaunchLt8Bit;
  return row;
}

constexpr Kernel kCublasLtRows[] = {
    CublasLtRow("cublaslt_f64", "cublasLtMatmul in f64", kBlasF64, {}),
    CublasLtRow("cublaslt_f32", "cublasLtMatmul in f32", kBlasF32, {}),
    CublasLtRow("cublaslt_tf32", "cublasLtMatmul, f32 multiplied as TF32", kBlasTF32, {.min = 80}),
    CublasLtRow("cublaslt_f16", "cublasLtMatmul, f16 summed in f32", kBlasF16, {}),
    CublasLtRow("cublaslt_f16acc16", "cublasLtMatmul, f16 summed in f16", kBlasF16Acc16, {}),
    CublasLtRow("cublaslt_bf16", "cublasLtMatmul, bf16 summed in f32", kBlasBF16, {.min = 80}),
    Row8Bit("cublaslt_e4m3", "cublasLtMatmul, e4m3 summed in f32", kBlasE4M3, {.min = 89}),
    Row8Bit("cublaslt_e5m2", "cublasLtMatmul, e5m2 with e4m3 summed in f32", kBlasE5M2,
            {.min = 89}),
    Row8Bit("cublaslt_s8", "cublasLtMatmul, s8 summed in s32", kBlasS8, {.min = 75}),
};

}  // namespace

absl::Span<const Kernel> CublasLtRows() { return kCublasLtRows; }

}  // namespace gemm
