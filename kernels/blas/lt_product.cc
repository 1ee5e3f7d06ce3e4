#include "kernels/blas/lt_product.h"

#include <utility>

#include "kernels/blas/libraries.h"
#include "kernels/blas/vocabulary.h"
#include "kernels/epilogue/in_place.h"

namespace gemm {
namespace {

// Enqueues the products of one call. The first one has `operands`.
absl::Status OneCall(const Launch& launch, const Problem& problem, const Operands& operands,
                     LtPlan& plan) {
  const Scalars scalars = MakeScalars(problem);
  if (plan.fused_epilogue && problem.bias != BiasAxis::kNone) {
    const absl::Status status = SetBias(plan, operands.bias);
    if (!status.ok()) return status;
  }
  const Workspace workspace = launch.libraries->workspace();
  return CublasStatus(
      cublasLtMatmul(launch.libraries->cublas_lt(), &plan.product, scalars.alpha, operands.b,
                     &plan.a, operands.a, &plan.b, scalars.beta,
                     problem.beta == 0 ? operands.d : operands.c, &plan.c, operands.d, &plan.d,
                     &plan.algorithm, workspace.data, workspace.bytes, launch.stream),
      "cublasLtMatmul");
}

bool HasMore(const Launch& launch) { return launch.piece != nullptr && launch.piece->more(); }

absl::Status LaunchThroughAccumulators(const Launch& launch) {
  const AccumulatorProduct accumulators =
      MakeAccumulatorProduct(launch.problem, launch.operands, launch.workspace);
  const absl::StatusOr<LtPlan*> plan =
      launch.libraries->PlanFor(accumulators.problem, accumulators.operands, AlgorithmOf(launch));
  if (!plan.ok()) return plan.status();
  const absl::Status status =
      RunLtPlan(launch, accumulators.problem, accumulators.operands, **plan);
  if (!status.ok() || HasMore(launch)) return status;
  return FinishFromAccumulators(launch.problem, launch.operands, accumulators, launch.stream);
}

}  // namespace

absl::Status RunLtPlan(const Launch& launch, const Problem& problem, const Operands& operands,
                       LtPlan& plan) {
  LaunchPiece* const piece = launch.piece;
  int64_t first = piece == nullptr ? 0 : std::exchange(piece->next, 0);
  for (int64_t calls = 0; first < problem.batch; first += plan.batch, ++calls) {
    if (piece != nullptr && calls == kLaunchesInPiece) {
      piece->next = first;
      break;
    }
    const Operands from = OperandsFrom(problem, operands, first);
    const int64_t left = problem.batch - first;
    absl::Status status;
    if (left >= plan.batch) {
      status = OneCall(launch, problem, from, plan);
    } else {
      LtPlan rest = plan;
      status = SetBatch(rest, left);
      if (status.ok()) status = OneCall(launch, problem, from, rest);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status LaunchLt(const Launch& launch) {
  const Problem& p = launch.problem;
  const Operands& o = launch.operands;
  if (NeedsAccumulatorScratch(p)) return LaunchThroughAccumulators(launch);
  const absl::StatusOr<LtPlan*> plan = launch.libraries->PlanFor(p, o, AlgorithmOf(launch));
  if (!plan.ok()) return plan.status();
  const absl::Status status = RunLtPlan(launch, p, o, **plan);
  if (!status.ok() || HasMore(launch)) return status;
  if ((*plan)->fused_epilogue || !HasBiasOrActivation(p)) return status;
  return ApplyBiasAndActivation(p, o, launch.stream);
}

}  // namespace gemm
