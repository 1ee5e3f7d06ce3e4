#include "server/engine/job/coalesced_launch.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>

#include "server/engine/bounds/options.h"

namespace gemmd {
namespace {

// How many of the jobs one thread tells of their ends, one after the other.
constexpr size_t kToldTogether = 4;

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

CoalescedLaunch::CoalescedLaunch(EngineCore& core, size_t device_index, CoalescingKind kind,
                                 Plan plan, absl::Duration measured)
    : core_(&core),
      device_index_(device_index),
      kind_(kind),
      plan_(std::move(plan)),
      measured_(measured) {}

Plan CoalescedLaunch::BatchPlan(int jobs) const {
  Plan batch = plan_;
  batch.form = Form::kBatch;
  batch.problem.batch = jobs;
  for (const Role role : kRoles) batch.shared[role] = kind_.residents[role] != nullptr;
  return batch;
}

CoalescedLayout CoalescedLaunch::LayoutOf(JobHoldings& holdings, int jobs) const {
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
  layout.workspace = Arena::RoundedUp(layout.result + count * plan_.result.pitched_bytes());
  layout.workspace_bytes = gemm::WorkspaceBytes(*kind_.kernel, BatchPlan(jobs).problem);
  layout.bytes = layout.workspace + layout.workspace_bytes;
  return layout;
}

int CoalescedLaunch::Most(JobHoldings& holdings, int allowed) const {
  const size_t up = device().upload_staging().block_bytes();
  const size_t down = device().download_staging().block_bytes();
  int most = allowed;
  while (most > 1 && (LayoutOf(holdings, most).sent_bytes > up ||
                      static_cast<size_t>(most) * plan_.result.dense_bytes() > down)) {
    most /= 2;
  }
  return most;
}

bool CoalescedLaunch::Reserve(JobHoldings& holdings, int jobs) {
  absl::StatusOr<DeviceBuffer> memory = device().memory().Allocate(LayoutOf(holdings, jobs).bytes);
  if (!memory.ok()) return false;
  memory_ = *std::move(memory);
  sent_ = device().upload_staging().TryAcquire();
  results_ = device().download_staging().TryAcquire();
  return sent_ && results_;
}

void CoalescedLaunch::Run(CoalescedLaunch launch) {
  JobHoldings& holdings = *launch.members_.front().holdings;  // any of them: they are alike
  const auto jobs = static_cast<int>(launch.members_.size());
  const CoalescedLayout layout = launch.LayoutOf(holdings, jobs);
  for (size_t i = 0; i < launch.members_.size(); ++i) {
    launch.members_[i].job->CopySent(layout, i, launch.sent_.data());
  }
  launch.guard_ = HangGuard(*launch.core_, launch.device_index_,
                            jobs * WorkOf(launch.plan_.problem), jobs * launch.measured_);
  absl::Status enqueued = launch.Enqueue(layout, holdings);
  Stream& stream = *launch.lease_;
  stream.Notify(
      [launch = std::move(launch), enqueued = std::move(enqueued)](absl::Status status) mutable {
        status.Update(enqueued);
        End(std::move(launch), std::move(status));
      });
}

absl::Status CoalescedLaunch::Enqueue(const CoalescedLayout& layout, JobHoldings& holdings) const {
  Stream& stream = *lease_;
  std::byte* const memory = memory_.data();
  const auto jobs = static_cast<int64_t>(members_.size());
  const auto sent = static_cast<int64_t>(layout.sent_bytes);
  absl::Status status = stream.Upload(sent_.data(), {memory, 1, sent, sent}, 0, layout.sent_bytes);
  if (!status.ok()) return status;
  const Plan plan = BatchPlan(static_cast<int>(jobs));
  OperandMemories inputs;
  for (const Role role : kRoles) {
    const JobInput& input = holdings[role];
    if (input.memory == nullptr) continue;
    inputs[role] = {input.payload ? memory + layout.operands[role] : input.memory->buffer.data(),
                    input.memory->leading_dimension()};
  }
  const gemm::Operands operands =
      BindOperands(plan, inputs, {memory + layout.result, holdings.result->leading_dimension()});
  status = stream.Record(*holdings.kernel_begin);
  if (!status.ok()) return status;
  // A library makes a plan for each number of products: it is asked for few of them.
  const bool library = kind_.kernel->tile_m == 0;
  for (int64_t first = 0; first < jobs;) {
    gemm::Problem problem = plan.problem;
    const auto left = static_cast<uint64_t>(jobs - first);
    problem.batch = static_cast<int64_t>(library ? std::bit_floor(left) : left);
    status =
        stream.Launch(*kind_.kernel, problem, gemm::OperandsFrom(plan.problem, operands, first),
                      {memory + layout.workspace, layout.workspace_bytes}, kind_.params);
    if (!status.ok()) return status;
    first += problem.batch;
  }
  status = stream.Record(*holdings.kernel_end);
  if (!status.ok()) return status;
  const Shape& result = plan.result;
  return stream.Download(
      {memory + layout.result, jobs * result.lines(), result.line_bytes(), result.pitch_bytes()}, 0,
      static_cast<size_t>(jobs) * result.dense_bytes(), results_.data());
}

void CoalescedLaunch::End(CoalescedLaunch launch, absl::Status status) {
  launch.guard_.End();
  launch.sent_.Reset();
  launch.memory_.Reset();
  std::vector<Member>& members = launch.members_;
  const auto jobs = static_cast<int>(members.size());
  const JobHoldings& timed = *members.front().holdings;
  const absl::Duration kernel_time =
      launch.device().Elapsed(*timed.kernel_begin, *timed.kernel_end) / jobs;
  const absl::Duration device_time = launch.lease_.Reset();
  const size_t bytes = launch.plan_.result.dense_bytes();
  Workers& answers = *launch.core_->answers;
  auto results = std::make_shared<StagingBlock>(std::move(launch.results_));
  const std::byte* const products = results->data();
  for (size_t begin = 0; begin < members.size(); begin += kToldTogether) {
    const size_t end = std::min(begin + kToldTogether, members.size());
    std::vector<Ended> ended;
    for (size_t i = begin; i < end; ++i) {
      ended.push_back({.job = std::move(members[i].job),
                       .computed = {.holdings = std::move(members[i].holdings),
                                    .device_time = device_time,
                                    .jobs = jobs,
                                    .kernel_time = kernel_time},
                       .product = products + i * bytes});
    }
    // The block goes before the holdings do, as Computed says: so nothing of it is left here.
    const bool last = end == members.size();
    auto shared = last ? std::move(results) : results;
    answers.Schedule([ended = std::move(ended), results = std::move(shared), status]() mutable {
      Tell(std::move(ended), std::move(results), status);
    });
  }
}

void CoalescedLaunch::Tell(std::vector<Ended> ended, std::shared_ptr<StagingBlock> results,
                           const absl::Status& status) {
  const auto waiting = std::stable_partition(ended.begin(), ended.end(), [&](Ended& one) {
    return !status.ok() || one.job->CopyProduct(one.product, one.computed);
  });
  for (auto it = waiting; it != ended.end(); ++it) {
    const bool last = std::next(it) == ended.end();
    it->job->PutBack(it->product, last ? std::move(results) : results, std::move(it->computed));
  }
  results.reset();
  for (auto it = ended.begin(); it != waiting; ++it) {
    it->job->OnComputed(status, std::move(it->computed));
  }
}

}  // namespace gemmd
