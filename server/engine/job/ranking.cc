#include "server/engine/job/ranking.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemm/catalogue.h"
#include "server/engine/core/core.h"
#include "server/engine/job/dispatcher.h"
#include "server/engine/job/plan.h"

namespace gemmd {
namespace {

// The epilogue is a beta: only its class matters.
gemm::Problem ProblemOf(const RankingQuestion& q) {
  return {.m = q.m,
          .n = q.n,
          .k = q.k,
          .types = {q.a, q.b, q.output.value_or(DefaultOutput(q.a)),
                    q.compute.value_or(DefaultCompute(q.a))},
          .trans_a = q.trans_a,
          .trans_b = q.trans_b,
          .beta = q.epilogue ? 1.0 : 0.0,
          .scales_a = q.block_scales ? gemm::ScaleBlocks::kLines : gemm::ScaleBlocks::kNone,
          .scales_b = q.block_scales ? gemm::ScaleBlocks::kTiles : gemm::ScaleBlocks::kNone};
}

// `seconds`: as EstimatedSeconds.
RankedKernel Ranked(const gemm::Kernel& kernel, const gemm::Problem& problem, double seconds) {
  RankedKernel ranked;
  ranked.kernel = &kernel;
  // Defaults are always in range.
  ranked.params = NamedParams(kernel, *gemm::ResolveParams(kernel, {}));
  ranked.workspace_bytes = gemm::WorkspaceBytes(kernel, problem);
  const bool estimated = !std::isinf(seconds);
  if (estimated) ranked.estimated_seconds = seconds;
  ranked.reason = !kernel.deterministic ? "not deterministic: only by name"
                  : estimated           ? "estimate"
                                        : absl::StrCat("rank ", kernel.auto_rank);
  return ranked;
}

// Those of the catalogue, or of the family, that take the problem on the device.
std::vector<const gemm::Kernel*> KernelsFor(const gemm::Problem& problem, const std::string& family,
                                            const gemm::DeviceCaps& device) {
  std::vector<const gemm::Kernel*> kernels;
  for (const gemm::Kernel* kernel : gemm::Catalogue()) {
    if (!family.empty() && kernel->family != family) continue;
    if (!gemm::Takes(*kernel, problem.types) || !gemm::RunsOn(*kernel, device)) continue;
    if (!gemm::CheckBlockScales(*kernel, problem).ok()) continue;
    if (!gemm::CheckSize(*kernel, problem).ok()) continue;
    kernels.push_back(kernel);
  }
  return kernels;
}

}  // namespace

absl::StatusOr<KernelRanking> RankKernels(const EngineCore& core, const RankingQuestion& question) {
  const absl::StatusOr<size_t> index = IndexOfDevice(core.devices, question.device);
  if (!index.ok()) return index.status();
  const Device& device = *core.devices[*index];
  const DeviceInfoRecord& info = device.info();
  const gemm::Problem problem = ProblemOf(question);
  const size_t most = core.options.max_job_bytes;
  const std::shared_ptr<const Tuning> tuning = core.tuning.Get();
  const PickSite site{.device = info.caps,
                      .tuned = tuning->For(*index),
                      .estimates = device.estimates(),
                      .max_workspace_bytes = most - std::min(most, SentBytes(problem))};
  absl::StatusOr<KernelPick> pick =
      PickKernel({.family = question.family}, problem, /*compute_given=*/true, site);
  if (!pick.ok()) return pick.status();
  KernelRanking ranking{
      .device = info.name, .machine = info.machine, .types = problem.types, .rule = pick->rule};
  const std::vector<const gemm::Kernel*> kernels = KernelsFor(problem, question.family, info.caps);
  const std::vector<double> seconds = EstimatedSeconds(problem, site, kernels);
  for (size_t i = 0; i < kernels.size(); ++i) {
    ranking.kernels.push_back(Ranked(*kernels[i], problem, seconds[i]));
    if (kernels[i] != pick->kernel) continue;
    ranking.kernels.back().params = std::move(pick->named_params);
    ranking.kernels.back().tuned = pick->tuned;
    ranking.kernels.back().reason = std::move(pick->reason);
  }
  const auto standing = [&pick](const RankedKernel& one) {
    return std::tuple(one.kernel != pick->kernel, !one.kernel->deterministic,
                      one.estimated_seconds == 0, one.estimated_seconds, -one.kernel->auto_rank);
  };
  std::stable_sort(
      ranking.kernels.begin(), ranking.kernels.end(),
      [&](const RankedKernel& x, const RankedKernel& y) { return standing(x) < standing(y); });
  return ranking;
}

}  // namespace gemmd
