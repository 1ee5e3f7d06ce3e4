#include "kernels/blas/lt_product.h"

#include "gemm/reference.h"
#include "kernels/blas/libraries.h"
#include "kernels/blas/vocabulary.h"
#include "kernels/epilogue/in_place.h"

namespace gemm {
namespace {

absl::Status LaunchWide(const Launch& launch) {
  const WideProduct wide = MakeWideProduct(launch.problem, launch.operands, launch.workspace);
  const absl::StatusOr<LtPlan*> plan = launch.libraries->PlanFor(wide.problem, wide.operands);
  if (!plan.ok()) return plan.status();
  const absl::Status status = RunLtPlan(launch, wide.problem, wide.operands, **plan);
  if (!status.ok()) return status;
  return FinishWideProduct(launch.problem, launch.operands, wide, launch.stream);
}

}  // namespace

absl::Status RunLtPlan(const Launch& launch, const Problem& problem, const Operands& operands,
                       LtPlan& plan) {
  const absl::StatusOr<Scalars> scalars = MakeScalars(problem);
  if (!scalars.ok()) return scalars.status();
  if (plan.fused_epilogue && problem.bias != BiasAxis::kNone) {
    const absl::Status status = SetBias(plan, operands.bias);
    if (!status.ok()) return status;
  }
  const Workspace workspace = launch.libraries->workspace();
  return CublasStatus(
      cublasLtMatmul(launch.libraries->cublas_lt(), &plan.product, scalars->alpha, operands.b,
                     &plan.a, operands.a, &plan.b, scalars->beta,
                     problem.beta == 0 ? operands.d : operands.c, &plan.c, operands.d, &plan.d,
                     &plan.algorithm, workspace.data, workspace.bytes, launch.stream),
      "cublasLtMatmul");
}

absl::Status LaunchLt(const Launch& launch) {
  const Problem& p = launch.problem;
  const Operands& o = launch.operands;
  const absl::StatusOr<Scalars> scalars = MakeScalars(p);
  if (!scalars.ok()) return scalars.status();
  // cublasLtMatmul leaves D as it is where alpha, in the type that it is passed
  // in, is 0 and C is another matrix.
  if (LoadElement(scalars->alpha, 0, ScaleType(p.types.compute)) == 0 && p.beta != 0) {
    return ApplyWithoutProduct(p, o, launch.stream);
  }
  const absl::StatusOr<LtPlan*> plan = launch.libraries->PlanFor(p, o);
  if (!plan.ok()) return plan.status();
  if (!(*plan)->fused_epilogue && NeedsWideProduct(p)) return LaunchWide(launch);
  const absl::Status status = RunLtPlan(launch, p, o, **plan);
  if (!status.ok() || (*plan)->fused_epilogue || !HasBiasOrActivation(p)) return status;
  return ApplyBiasAndActivation(p, o, launch.stream);
}

}  // namespace gemm
