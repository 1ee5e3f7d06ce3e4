// The part of JobImpl that is for several jobs in one launch (coalesced_launch.h).
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "server/base/clock.h"
#include "server/engine/job/job_impl.h"

namespace gemmd {
namespace {

int AllowedOn(Device& device, const EngineOptions& options) {
  if (options.max_coalesced_jobs > 0) return options.max_coalesced_jobs;
  return device.info().caps.target == gemm::Target::kCuda ? kMostCoalescedJobs : 1;
}

}  // namespace

// The launch takes its memory and blocks first: jobs that have left the queue must run.
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
  // If nobody joins, these are released after the launch's memory and blocks, which belong to the
  // device.
  std::shared_ptr<JobHoldings> holdings;
  {
    MutexLock lock(mutex_);
    holdings = holdings_;
  }
  if (holdings == nullptr) return false;
  std::vector<std::shared_ptr<JobImpl>> late;
  {
    CoalescedLaunch launch(core_, admitted_.device_index, *kind_, admitted_.plan,
                           admitted_.claim.cost.measured);
    const int most = launch.Most(*holdings, std::min(allowed, waiting + 1));
    if (most == 1 || !launch.Reserve(*holdings, most)) return false;
    const std::vector<std::shared_ptr<Runnable>> others =
        scheduler.TakeAlike(lease, most - 1, alike);
    if (others.empty()) return false;
    launch.Take(std::move(lease));
    if (!Join(launch)) late.push_back(shared_from_this());
    for (const std::shared_ptr<Runnable>& other : others) {
      auto job = std::static_pointer_cast<JobImpl>(other);
      if (!job->Join(launch)) late.push_back(std::move(job));
    }
    if (!launch.empty()) {
      holdings.reset();
      CoalescedLaunch::Run(std::move(launch));
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
  holdings_->work.Begin();
  report_.phases.queue = now - ready_;
  where_ = "while it ran";
  launch.Add(shared_from_this(), holdings_);
  return true;
}

// Copies nothing of a job that has ended by now: nobody gets its product.
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

bool JobImpl::CopyProduct(const std::byte* product, Computed& computed) {
  StagingBlock block = device().download_staging().TryAcquire(admitted_.spec.receiver);
  // A kernel that hangs on a lost device may still write to a recycled block.
  if (!block || !device().Health().ok()) return false;
  std::memcpy(block.data(), product, admitted_.plan.result.dense_bytes());
  computed.result_block = std::move(block);
  return true;
}

void JobImpl::PutBack(const std::byte* product, std::shared_ptr<StagingBlock> results,
                      Computed computed) {
  const MatrixMemory& result = *computed.holdings->result;
  Stream& stream = device().upload_stream();
  absl::Status enqueued = stream.Upload(product, result.pitched(), 0, result.shape.dense_bytes());
  stream.Notify([self = shared_from_this(), computed = std::move(computed),
                 results = std::move(results),
                 enqueued = std::move(enqueued)](absl::Status status) mutable {
    results.reset();
    status.Update(enqueued);
    self->HandOver(std::move(status), std::move(computed));
  });
}

}  // namespace gemmd
