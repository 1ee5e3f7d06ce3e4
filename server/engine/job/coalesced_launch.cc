#include "server/engine/job/coalesced_launch.h"

#include "server/engine/bounds/options.h"

namespace gemmd {
namespace {

bool Alike(const gemm::Problem& x, const gemm::Problem& y) {
  return x.m == y.m && x.n == y.n && x.k == y.k && x.types == y.types && x.trans_a == y.trans_a &&
         x.trans_b == y.trans_b && x.alpha == y.alpha && x.beta == y.beta && x.bias == y.bias &&
         x.activation == y.activation && x.leaky_slope == y.leaky_slope;
}

}  // namespace

std::optional<CoalescingKind> CoalescingKind::Of(const AdmittedJob& job, JobHoldings& holdings) {
  const Plan& plan = job.plan;
  if (!RulesOf(plan.form).coalesced) return std::nullopt;
  if (!job.pick.kernel->batches || job.check.plan.has_value()) return std::nullopt;
  if (!job.spec.stream_result || job.spec.keep_result.has_value()) return std::nullopt;
  if (job.payload_bytes == 0 || job.payload_bytes > kSmallBytes) return std::nullopt;
  if (plan.result.dense_bytes() > kSmallBytes) return std::nullopt;
  CoalescingKind kind{.kernel = job.pick.kernel,
                      .params = job.pick.params,
                      .problem = plan.problem,
                      .swapped = plan.swapped};
  for (const Role role : kRoles) {
    const JobInput& input = holdings[role];
    if (input.generator.has_value()) return std::nullopt;
    if (!input.payload) kind.residents[role] = input.memory.get();
  }
  return kind;
}

bool operator==(const CoalescingKind& x, const CoalescingKind& y) {
  return x.kernel == y.kernel && x.params == y.params && Alike(x.problem, y.problem) &&
         x.swapped == y.swapped && x.residents == y.residents;
}

Plan BatchPlan(const CoalescingKind& kind, const Plan& plan, int jobs) {
  Plan batch = plan;
  batch.form = Form::kBatch;
  batch.problem.batch = jobs;
  for (const Role role : kRoles) batch.shared[role] = kind.residents[role] != nullptr;
  return batch;
}

CoalescedLayout CoalescedLayout::Of(const CoalescingKind& kind, const Plan& plan,
                                    JobHoldings& holdings, int jobs) {
  CoalescedLayout layout;
  const auto count = static_cast<size_t>(jobs);
  for (const Role role : kRoles) {
    const JobInput& input = holdings[role];
    if (!input.payload) continue;
    layout.operands[role] = layout.sent_bytes;
    layout.sent_bytes =
        Arena::RoundedUp(layout.sent_bytes + count * input.memory->shape.pitched_bytes());
  }
  layout.result = layout.sent_bytes;
  layout.workspace = Arena::RoundedUp(layout.result + count * plan.result.pitched_bytes());
  layout.workspace_bytes = gemm::WorkspaceBytes(*kind.kernel, BatchPlan(kind, plan, jobs).problem);
  layout.bytes = layout.workspace + layout.workspace_bytes;
  return layout;
}

}  // namespace gemmd
