// The table of the cuBLASLt family: the heuristic's first choice for each
// problem, with bias and relu in its epilogue where it has one.
#include "kernels/blas/libraries.h"
#include "kernels/blas/types.h"
#include "kernels/blas/vocabulary.h"
#include "kernels/core/families.h"
#include "kernels/epilogue/in_place.h"

namespace gemm {
namespace {

// The product by its plan, with what the plan has fused.
absl::Status Product(const Launch& launch, const Problem& p, const Operands& o, LtPlan& plan) {
  const absl::StatusOr<Scalars> scalars = MakeScalars(p);
  if (!scalars.ok()) return scalars.status();
  if (plan.fused_epilogue && p.bias != BiasAxis::kNone) {
    const absl::Status status = SetBias(plan, o.bias);
    if (!status.ok()) return status;
  }
  const Workspace workspace = launch.libraries->workspace();
  return CublasStatus(
      cublasLtMatmul(launch.libraries->cublas_lt(), &plan.product, scalars->alpha, o.b, &plan.a,
                     o.a, &plan.b, scalars->beta, p.beta == 0 ? o.d : o.c, &plan.c, o.d, &plan.d,
                     &plan.algorithm, workspace.data, workspace.bytes, launch.stream),
      "cublasLtMatmul");
}

absl::Status LaunchWide(const Launch& launch) {
  const WideProduct wide = MakeWideProduct(launch.problem, launch.operands, launch.workspace);
  const absl::StatusOr<LtPlan*> plan = launch.libraries->PlanFor(wide.problem, wide.operands);
  if (!plan.ok()) return plan.status();
  const absl::Status status = Product(launch, wide.problem, wide.operands, **plan);
  if (!status.ok()) return status;
  return FinishWideProduct(launch.problem, launch.operands, wide, launch.stream);
}

absl::Status LaunchCublasLt(const Launch& launch) {
  const Problem& p = launch.problem;
  const Operands& o = launch.operands;
  const absl::StatusOr<LtPlan*> plan = launch.libraries->PlanFor(p, o);
  if (!plan.ok()) return plan.status();
  if (!(*plan)->fused_epilogue && NeedsWideProduct(p)) return LaunchWide(launch);
  const absl::Status status = Product(launch, p, o, **plan);
  if (!status.ok() || (*plan)->fused_epilogue || !HasBiasOrActivation(p)) return status;
  return ApplyBiasAndActivation(p, o, launch.stream);
}

constexpr Kernel CublasLtRow(absl::string_view name, absl::string_view summary,
                             absl::Span<const Types> types, int min_capability) {
  return {
      .name = name,
      .family = "cublaslt",
      .summary = summary,
      .capability = {.min = min_capability},
      .types = types,
      .auto_rank = 90,
      .workspace_bytes = WideProductBytes,
      .launch = LaunchCublasLt,
  };
}

constexpr Kernel kRows[] = {
    CublasLtRow("cublaslt_f64", "cublasLtMatmul in f64", kBlasF64, 0),
    CublasLtRow("cublaslt_f32", "cublasLtMatmul in f32", kBlasF32, 0),
    CublasLtRow("cublaslt_tf32", "cublasLtMatmul, f32 multiplied as TF32", kBlasTF32, 80),
    CublasLtRow("cublaslt_f16", "cublasLtMatmul, f16 summed in f32", kBlasF16, 0),
    CublasLtRow("cublaslt_f16acc16", "cublasLtMatmul, f16 summed in f16", kBlasF16Acc16, 0),
    CublasLtRow("cublaslt_bf16", "cublasLtMatmul, bf16 summed in f32", kBlasBF16, 80),
};

}  // namespace

absl::Span<const Kernel> CublasLtRows() { return kRows; }

}  // namespace gemm
