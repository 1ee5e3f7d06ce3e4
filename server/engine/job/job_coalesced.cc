// The part of JobImpl that is for several jobs in one launch (coalesced_launch.h).
#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "server/base/clock.h"
#include "server/engine/job/job_impl.h"

namespace gemmd {
namespace {

// How many of the jobs one thread tells of their ends, one after the other.
constexpr size_t kToldTogether = 4;

int AllowedOn(Device& device, const EngineOptions& options) {
  if (options.max_coalesced_jobs > 0) return options.max_coalesced_jobs;
  return device.info().caps.target == gemm::Target::kCuda ? kMostCoalescedJobs : 1;
}

// As many as one staging block takes, each way.
int MostTogether(const CoalescingKind& kind, const Plan& plan, JobHoldings& holdings,
                 Device& device, int allowed) {
  const size_t up = device.upload_staging().block_bytes();
  const size_t down = device.download_staging().block_bytes();
  int most = allowed;
  while (most > 1 && (CoalescedLayout::Of(kind, plan, holdings, most).sent_bytes > up ||
                      static_cast<size_t>(most) * plan.result.dense_bytes() > down)) {
    most /= 2;
  }
  return most;
}

}  // namespace

// What the launch needs is taken first: jobs that have left the queue must run.
bool JobImpl::Coalesce(StreamLease& lease) {
  Scheduler& scheduler = *core_.schedulers[admitted_.device_index];
  const int allowed = AllowedOn(device(), core_.options);
  if (allowed == 1 || !kind_.has_value() || !admitted_.claim.cost.quick()) return false;
  const auto alike = [this](const Runnable* waiting) {
    const auto* job = dynamic_cast<const JobImpl*>(waiting);
    return job != nullptr && job->kind_ == kind_;
  };
  const int waiting = scheduler.PeekAlike(lease, alike);
  if (waiting == 0) return false;
  // Not let go before the launch's memory and blocks, which are of the device, where nobody joins.
  std::shared_ptr<JobHoldings> holdings;
  {
    MutexLock lock(mutex_);
    holdings = holdings_;
  }
  if (holdings == nullptr) return false;
  const int most =
      MostTogether(*kind_, admitted_.plan, *holdings, device(), std::min(allowed, waiting + 1));
  if (most == 1) return false;
  std::vector<std::shared_ptr<JobImpl>> late;
  {
    CoalescedLaunch launch;
    absl::StatusOr<DeviceBuffer> memory = device().memory().Allocate(
        CoalescedLayout::Of(*kind_, admitted_.plan, *holdings, most).bytes);
    launch.sent = device().upload_staging().TryAcquire();
    launch.results = device().download_staging().TryAcquire();
    if (!memory.ok() || !launch.sent || !launch.results) return false;
    const std::vector<std::shared_ptr<Runnable>> others =
        scheduler.TakeAlike(lease, most - 1, alike);
    if (others.empty()) return false;
    launch.memory = *std::move(memory);
    launch.lease = std::move(lease);
    if (!Join(launch)) late.push_back(shared_from_this());
    for (const std::shared_ptr<Runnable>& other : others) {
      auto job = std::static_pointer_cast<JobImpl>(other);
      if (!job->Join(launch)) late.push_back(std::move(job));
    }
    if (!launch.members.empty()) {
      holdings.reset();
      EnqueueCoalesced(std::move(launch));
    }
  }
  holdings.reset();
  for (const std::shared_ptr<JobImpl>& job : late) {
    job->Fail(absl::DeadlineExceededError("the job's deadline passed before its launch"));
  }
  return true;
}

// As Launch does. A job that has ended does not join; false: nor does this one, which is late.
bool JobImpl::Join(CoalescedLaunch& launch) {
  const absl::Time now = SteadyNow();
  if (now >= admitted_.spec.deadline) return false;
  MutexLock lock(mutex_);
  if (holdings_ == nullptr) return true;
  ReleaseOperands();
  launched_ = true;
  report_.phases.queue = now - ready_;
  where_ = "while it ran";
  launch.members.push_back({.job = shared_from_this(), .holdings = holdings_});
  return true;
}

// Leaves out what a job had that has ended by now: nobody gets its product.
void JobImpl::CopySent(const CoalescedLayout& layout, size_t index, std::byte* to) {
  SmallPayload sent;  // outlives the lock: its block may go to one that waits for it
  MutexLock lock(mutex_);
  if (holdings_ == nullptr) return;
  for (const Role role : kRoles) {
    const JobInput& input = (*holdings_)[role];
    if (!input.payload) continue;
    const Shape& shape = input.memory->shape;
    small_payload_.CopyTo(role, shape.line_bytes(), shape.pitch_bytes(),
                          to + layout.operands[role] + index * shape.pitched_bytes());
  }
  sent = std::exchange(small_payload_, SmallPayload());
}

void JobImpl::EnqueueCoalesced(CoalescedLaunch launch) {
  // Any of them: they are alike.
  JobImpl& first = *launch.members.front().job;
  JobHoldings& holdings = *launch.members.front().holdings;
  const auto jobs = static_cast<int>(launch.members.size());
  const CoalescedLayout layout =
      CoalescedLayout::Of(*first.kind_, first.admitted_.plan, holdings, jobs);
  for (size_t i = 0; i < launch.members.size(); ++i) {
    launch.members[i].job->CopySent(layout, i, launch.sent.data());
  }
  launch.guard = HangGuard(first.core_, first.admitted_.device_index,
                           jobs * WorkOf(first.admitted_.plan.problem),
                           jobs * first.admitted_.claim.cost.measured);
  absl::Status enqueued = first.EnqueueBatch(launch, layout, holdings);
  Stream& stream = *launch.lease;
  stream.Notify(
      [launch = std::move(launch), enqueued = std::move(enqueued)](absl::Status status) mutable {
        status.Update(enqueued);
        EndCoalesced(std::move(launch), std::move(status));
      });
}

absl::Status JobImpl::EnqueueBatch(const CoalescedLaunch& launch, const CoalescedLayout& layout,
                                   JobHoldings& holdings) const {
  Stream& stream = *launch.lease;
  std::byte* const memory = launch.memory.data();
  const auto jobs = static_cast<int64_t>(launch.members.size());
  const auto sent = static_cast<int64_t>(layout.sent_bytes);
  absl::Status status =
      stream.Upload(launch.sent.data(), {memory, 1, sent, sent}, 0, layout.sent_bytes);
  if (!status.ok()) return status;
  const Plan plan = BatchPlan(*kind_, admitted_.plan, static_cast<int>(jobs));
  const Shape& result = plan.result;
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
  const bool library = kind_->kernel->tile_m == 0;
  for (int64_t first = 0; first < jobs;) {
    gemm::Problem problem = plan.problem;
    const auto left = static_cast<uint64_t>(jobs - first);
    problem.batch = static_cast<int64_t>(library ? std::bit_floor(left) : left);
    status =
        stream.Launch(*kind_->kernel, problem, gemm::OperandsFrom(plan.problem, operands, first),
                      {memory + layout.workspace, layout.workspace_bytes}, kind_->params);
    if (!status.ok()) return status;
    first += problem.batch;
  }
  status = stream.Record(*holdings.kernel_end);
  if (!status.ok()) return status;
  return stream.Download(
      {memory + layout.result, jobs * result.lines(), result.line_bytes(), result.pitch_bytes()}, 0,
      static_cast<size_t>(jobs) * result.dense_bytes(), launch.results.data());
}

// On the device's thread: passes the stream on first, and has the jobs told elsewhere.
void JobImpl::EndCoalesced(CoalescedLaunch launch, absl::Status status) {
  launch.guard.End();
  launch.sent.Reset();
  launch.memory.Reset();
  const auto jobs = static_cast<int>(launch.members.size());
  JobImpl& first = *launch.members.front().job;
  JobHoldings& timed = *launch.members.front().holdings;
  const absl::Duration kernel_time =
      first.device().Elapsed(*timed.kernel_begin, *timed.kernel_end) / jobs;
  const absl::Duration device_time = launch.lease.Reset();
  const size_t bytes = first.admitted_.plan.result.dense_bytes();
  Workers& answers = *first.core_.answers;
  auto results = std::make_shared<StagingBlock>(std::move(launch.results));
  const std::byte* const products = results->data();
  for (size_t begin = 0; begin < launch.members.size(); begin += kToldTogether) {
    const size_t end = std::min(begin + kToldTogether, launch.members.size());
    std::vector<CoalescedEnd> ends;
    for (size_t i = begin; i < end; ++i) {
      ends.push_back({.job = std::move(launch.members[i].job),
                      .computed = {.holdings = std::move(launch.members[i].holdings),
                                   .device_time = device_time,
                                   .jobs = jobs,
                                   .kernel_time = kernel_time},
                      .product = products + i * bytes});
    }
    // The block goes before the holdings do, as Computed says: so nothing of it is left here.
    const bool last = end == launch.members.size();
    auto shared = last ? std::move(results) : results;
    answers.Schedule([ends = std::move(ends), results = std::move(shared), status]() mutable {
      TellEnds(std::move(ends), std::move(results), status);
    });
  }
}

void JobImpl::TellEnds(std::vector<CoalescedEnd> ends, std::shared_ptr<StagingBlock> results,
                       const absl::Status& status) {
  const auto waiting = std::stable_partition(ends.begin(), ends.end(), [&](CoalescedEnd& one) {
    return !status.ok() || one.job->CopyProduct(one);
  });
  for (auto it = waiting; it != ends.end(); ++it) {
    const bool last = std::next(it) == ends.end();
    it->job->PutBack(std::move(*it), last ? std::move(results) : results);
  }
  results.reset();
  for (auto it = ends.begin(); it != waiting; ++it) {
    it->job->OnComputed(status, std::move(it->computed));
  }
}

// Into a block of its receiver, which may be slow to read it. False where that one holds its share
// of the blocks.
bool JobImpl::CopyProduct(CoalescedEnd& end) {
  StagingBlock block = device().download_staging().TryAcquire(admitted_.spec.receiver);
  // A kernel that hangs on a lost device may still write to a recycled block.
  if (!block || !device().Health().ok()) return false;
  std::memcpy(block.data(), end.product, admitted_.plan.result.dense_bytes());
  end.computed.result_block = std::move(block);
  return true;
}

// To the device memory that the job has for its result, from where it is downloaded once its
// receiver lets go of blocks: so that slow receivers fill neither the pool nor the host's memory.
void JobImpl::PutBack(CoalescedEnd end, std::shared_ptr<StagingBlock> results) {
  const MatrixMemory& result = *end.computed.holdings->result;
  Stream& stream = device().upload_stream();
  absl::Status enqueued =
      stream.Upload(end.product, result.pitched(), 0, result.shape.dense_bytes());
  stream.Notify([self = std::move(end.job), computed = std::move(end.computed),
                 results = std::move(results),
                 enqueued = std::move(enqueued)](absl::Status status) mutable {
    results.reset();
    status.Update(enqueued);
    self->HandOver(std::move(status), std::move(computed));
  });
}

}  // namespace gemmd
