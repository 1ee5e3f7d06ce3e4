#include "gemm/run.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "gemm/scalars.h"
#include "kernels/core/without_product.h"

namespace gemm {
namespace {

// `problem` has its scalars rounded, and `operands` no C where beta is 0.
absl::Status RunRounded(const Kernel& kernel, const Problem& problem, const Operands& operands,
                        const Launch& launch) {
  if (IsStopped(launch)) return Stopped();
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
                        .transposed = launch.transposed,
                        .piece = launch.piece,
                        .stop = launch.stop});
}

// Runs the products of a group that the kernel does not take in one launch. They share the
// workspace: on the GPU the stream runs them in order. One event cannot mark the transposes of
// each.
absl::Status RunOneByOne(const Kernel& kernel, const Problem& problem, const Operands& operands,
                         Launch launch) {
  launch.transposed = nullptr;
  LaunchPiece* const piece = std::exchange(launch.piece, nullptr);
  const auto products = static_cast<int64_t>(problem.extents.size());
  const int64_t begin = piece == nullptr ? 0 : piece->next;
  const int64_t end = piece == nullptr ? products : std::min(products, begin + kLaunchesInPiece);
  int64_t first =
      std::accumulate(problem.extents.begin(), problem.extents.begin() + begin, int64_t{0});
  for (int64_t i = begin; i < end; ++i) {
    OneProduct one = ProductOfGroup(problem, operands, i, first);
    first += problem.extents[static_cast<size_t>(i)];
    if (one.problem.m == 0) continue;
    if (one.problem.k == 0) one.problem.alpha = 0;
    absl::Status status = RunRounded(kernel, one.problem, one.operands, launch);
    if (!status.ok()) return status;
  }
  if (piece != nullptr) piece->next = end == products ? 0 : end;
  return absl::OkStatus();
}

}  // namespace

absl::Status RunProduct(const Kernel& kernel, const Launch& launch) {
  if (absl::Status status = CheckScalars(launch.problem); !status.ok()) return status;
  if (absl::Status status = CheckBatch(kernel, launch.problem.batch); !status.ok()) return status;
  if (absl::Status status = CheckBlockScales(kernel, launch.problem); !status.ok()) return status;
  Problem problem = RoundScalars(launch.problem);
  Operands operands = launch.operands;
  if (problem.beta == 0) {
    operands.c = nullptr;
    operands.ldc = 0;
    operands.stride_c = 0;
  }
  // Without A and B a group by m is one product, except that each of its products has its own bias.
  if (problem.grouped != GroupedBy::kNothing &&
      (problem.alpha == 0 || !TakesInOneLaunch(kernel, problem))) {
    return RunOneByOne(kernel, problem, operands, launch);
  }
  if (kernel.target != Target::kHost) return RunRounded(kernel, problem, operands, launch);
  const int64_t products = std::exchange(problem.batch, 1);
  for (int64_t i = 0; i < products; ++i) {
    const Operands one = OperandsFrom(problem, operands, i);
    if (absl::Status status = RunRounded(kernel, problem, one, launch); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace gemm
