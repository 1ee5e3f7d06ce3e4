#include "kernels/blas/lt_algorithms.h"

#include <utility>

#include "kernels/blas/libraries.h"
#include "kernels/blas/lt_plan.h"
#include "kernels/blas/lt_product.h"

namespace gemm {

absl::StatusOr<std::vector<std::function<absl::Status(const Launch&)>>> LtAlgorithms(
    Libraries& libraries, const Problem& problem, const Operands& operands, int count) {
  absl::StatusOr<std::vector<LtPlan>> plans =
      MakeLtPlans(libraries.cublas_lt(), problem, operands, libraries.workspace().bytes, count);
  if (!plans.ok()) return plans.status();
  std::vector<std::function<absl::Status(const Launch&)>> launches;
  for (LtPlan& plan : *plans) {
    launches.push_back([plan](const Launch& launch) mutable {
      return RunLtPlan(launch, launch.problem, launch.operands, plan);
    });
  }
  return launches;
}

}  // namespace gemm
