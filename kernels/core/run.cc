#include "gemm/run.h"

#include "gemm/scalars.h"
#include "kernels/core/without_product.h"

namespace gemm {

absl::Status RunProduct(const Kernel& kernel, const Launch& launch) {
  if (absl::Status status = CheckScalars(launch.problem); !status.ok()) return status;
  const Problem problem = RoundScalars(launch.problem);
  Operands operands = launch.operands;
  if (problem.beta == 0) {
    operands.c = nullptr;
    operands.ldc = 0;
  }
  if (problem.alpha == 0) {
    return kernel.target == Target::kHost ? ApplyWithoutProductOnHost(problem, operands)
                                          : ApplyWithoutProduct(problem, operands, launch.stream);
  }
  return kernel.launch({.problem = problem,
                        .operands = operands,
                        .workspace = launch.workspace,
                        .params = launch.params,
                        .stream = launch.stream,
                        .libraries = launch.libraries,
                        .transposed = launch.transposed});
}

}  // namespace gemm
