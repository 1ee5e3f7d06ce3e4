#include "server/engine/policy/scheduler.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "server/base/clock.h"

namespace gemmd {

// A job that ends as soon as it is run, as one that is late does, passes its stream on from within
// its Run. The next one is run when that has returned, so that the stack does not grow with a queue
// of such jobs.
void Scheduler::Start(Starting next) {
  // Jobs that wait for the Run on this thread to return; null outside of Start.
  thread_local std::vector<Starting>* starting_here = nullptr;
  if (starting_here != nullptr) return starting_here->push_back(std::move(next));
  std::vector<Starting> starting;
  starting_here = &starting;
  starting.push_back(std::move(next));
  while (!starting.empty()) {
    Starting now = std::move(starting.back());
    starting.pop_back();
    now.job->Run(std::move(now.lease));
  }
  starting_here = nullptr;
}

StreamLease& StreamLease::operator=(StreamLease&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  scheduler_ = std::exchange(other.scheduler_, nullptr);
  stream_ = std::exchange(other.stream_, nullptr);
  runs_ = other.runs_;
  begun_ = other.begun_;
  charges_ = std::move(other.charges_);
  return *this;
}

absl::Duration StreamLease::Reset() {
  if (stream_ == nullptr) return absl::ZeroDuration();
  return scheduler_->Release(*this);
}

Scheduler::Scheduler(Device& device, QueueLimit& limit, absl::Duration max_wait)
    : device_(device), limit_(limit), max_wait_(max_wait) {
  MutexLock lock(mutex_);
  for (const auto& stream : device.compute_streams()) any_.free.push_back(stream.get());
  for (const auto& stream : device.quick_streams()) quick_.free.push_back(stream.get());
  for (Lane* lane : {&any_, &quick_}) lane->streams = static_cast<int>(lane->free.size());
}

StreamLease Scheduler::Lease(FairQueue::Which runs) {
  std::vector<Stream*>& free = LaneOf(runs).free;
  device_time_.JobBegins(SteadyNow());
  ++begun_;
  StreamLease lease;
  lease.scheduler_ = this;
  lease.stream_ = free.back();
  lease.runs_ = runs;
  lease.begun_ = device_time_.passed();
  free.pop_back();
  return lease;
}

StreamLease Scheduler::LeaseFree(const StreamClaim& claim) {
  for (const FairQueue::Which runs : {FairQueue::Which::kQuick, FairQueue::Which::kAny}) {
    if (LaneOf(runs).free.empty()) continue;
    if (runs == FairQueue::Which::kQuick && !claim.cost.quick()) continue;
    std::optional<FairQueue::Charge> charge = queue_.Pass(runs, claim);
    if (!charge.has_value()) continue;
    StreamLease lease = Lease(runs);
    lease.charges_.push_back(*std::move(charge));
    return lease;
  }
  return {};
}

absl::Status Scheduler::Submit(std::shared_ptr<Runnable> job, const StreamClaim& claim) {
  StreamLease lease;
  {
    MutexLock lock(mutex_);
    if (absl::Status status = CheckWaitLocked(claim); !status.ok()) return status;
    lease = LeaseFree(claim);
    if (lease.stream_ == nullptr) {
      const int held = queue_.size_of(claim.flow);
      if (!limit_.TryTake(held)) return limit_.Full(held, device_.info().name);
      const absl::Time now = SteadyNow();
      queue_.Add(std::move(job), claim, now);
      any_.pace.OnWait(now);
      // If a quick stream is free, the flow is in debt and waits for its turn on another.
      if (claim.cost.quick() && quick_.free.empty()) quick_.pace.OnWait(now);
      return absl::OkStatus();
    }
  }
  job->Prepare();
  device_.Execute(
      [job = std::move(job), lease = std::move(lease)]() mutable { job->Run(std::move(lease)); });
  return absl::OkStatus();
}

absl::Duration Scheduler::WaitOf(const StreamClaim& claim) const {
  if (HasStreamFor(claim)) return absl::ZeroDuration();
  const bool quick = claim.cost.quick() && quick_.streams > 0 && !queue_.InDebt(claim);
  const QueuePace& pace = quick ? quick_.pace : any_.pace;
  const auto which = quick ? FairQueue::Which::kQuick : FairQueue::Which::kAny;
  const absl::Time now = SteadyNow();
  return pace.WaitBehind(queue_.Ahead(claim, which, now), now);
}

absl::Status Scheduler::CheckWaitLocked(const StreamClaim& claim) const {
  const absl::string_view device = device_.info().name;
  if (absl::Status status = CheckDeadline(claim, device); !status.ok()) return status;
  // As many as there are streams may wait, so that a wrong estimate is put right.
  if (queue_.size() < any_.streams + quick_.streams) return absl::OkStatus();
  return CheckWaitOf(claim, {.device = device,
                             .time = WaitOf(claim),
                             .most = max_wait_,
                             .jobs = queue_.size(),
                             .jobs_of_flow = queue_.size_of(claim.flow)});
}

bool Scheduler::HasStreamFor(const StreamClaim& claim) const {
  if (!any_.free.empty()) return true;
  return claim.cost.quick() && !quick_.free.empty() && !queue_.InDebt(claim);
}

absl::Status Scheduler::CheckWait(const StreamClaim& claim) const {
  MutexLock lock(mutex_);
  return CheckWaitLocked(claim);
}

absl::Duration Scheduler::estimated_wait() const {
  MutexLock lock(mutex_);
  if (!any_.free.empty()) return absl::ZeroDuration();
  return any_.pace.WaitBehind(queue_.cost(), SteadyNow());
}

void Scheduler::Withdraw(const Runnable* job) {
  std::shared_ptr<Runnable> withdrawn;  // outlives the lock
  std::vector<Starting> starting;
  {
    MutexLock lock(mutex_);
    withdrawn = queue_.Remove(job);
    if (withdrawn == nullptr) return;
    limit_.Return();
    const absl::Time now = SteadyNow();
    if (queue_.size() == 0) any_.pace.OnIdle(now);
    if (!queue_.quick_waits()) quick_.pace.OnIdle(now);
    starting = Fill(now);  // quick jobs that waited for its sake
  }
  for (Starting& next : starting) {
    device_.Execute([next = std::move(next)]() mutable { Start(std::move(next)); });
  }
}

std::shared_ptr<Runnable> Scheduler::Charge(StreamLease& lease, FairQueue::Taken taken,
                                            absl::Time now) {
  LaneOf(lease.runs_).pace.OnTurn(now, taken.charge.cost);
  // It may have been a quick one, or the last one, and taken by the other lane.
  if (taken.quick) quick_.pace.OnMove(now);
  if (queue_.size() == 0) any_.pace.OnEmpty();
  if (!queue_.quick_waits()) quick_.pace.OnEmpty();
  limit_.Return();
  lease.charges_.push_back(std::move(taken.charge));
  return std::move(taken.job);
}

int Scheduler::PeekAlike(const StreamLease& lease, absl::FunctionRef<bool(const Runnable*)> alike) {
  MutexLock lock(mutex_);
  if (queue_.size() == 0) return 0;
  const Runnable* const next = queue_.Next(lease.runs_);
  return next != nullptr && alike(next) ? queue_.size() : 0;
}

// A quick job that may go now that another's turn has come does so when the lease ends.
std::vector<std::shared_ptr<Runnable>> Scheduler::TakeAlike(
    StreamLease& lease, int most, absl::FunctionRef<bool(const Runnable*)> alike) {
  std::vector<std::shared_ptr<Runnable>> more;
  MutexLock lock(mutex_);
  const absl::Time now = SteadyNow();
  while (static_cast<int>(more.size()) < most) {
    std::optional<FairQueue::Taken> taken = queue_.TakeIf(lease.runs_, alike);
    if (!taken.has_value()) break;
    more.push_back(Charge(lease, *std::move(taken), now));
    ++begun_;
  }
  return more;
}

std::vector<Scheduler::Starting> Scheduler::Fill(absl::Time now) {
  std::vector<Starting> starting;
  // A turn on a stream for any job may bring a quick one out of debt.
  for (const FairQueue::Which runs : {FairQueue::Which::kAny, FairQueue::Which::kQuick}) {
    Lane& lane = LaneOf(runs);
    while (!lane.free.empty()) {
      std::optional<FairQueue::Taken> taken = queue_.Take(runs);
      if (!taken.has_value()) {
        lane.pace.OnIdle(now);
        break;
      }
      StreamLease lease = Lease(runs);
      std::shared_ptr<Runnable> job = Charge(lease, *std::move(taken), now);
      starting.push_back({std::move(job), std::move(lease)});
    }
  }
  if (!any_.free.empty()) queue_.ForgetDebts();
  return starting;
}

absl::Duration Scheduler::Release(StreamLease& lease) {
  Stream* const stream = std::exchange(lease.stream_, nullptr);
  std::vector<Starting> starting;
  absl::Duration took;
  {
    MutexLock lock(mutex_);
    const absl::Time now = SteadyNow();
    device_time_.JobEnds(now);
    took = (device_time_.passed() - lease.begun_) / static_cast<int64_t>(lease.charges_.size());
    for (const FairQueue::Charge& charge : lease.charges_) queue_.Settle(lease.runs_, charge, took);
    lease.charges_.clear();
    LaneOf(lease.runs_).free.push_back(stream);
    starting = Fill(now);
  }
  for (Starting& next : starting) Start(std::move(next));
  return took;
}

Gauge Scheduler::streams() const {
  MutexLock lock(mutex_);
  const auto free = static_cast<int>(any_.free.size() + quick_.free.size());
  const int all = any_.streams + quick_.streams;
  return {all - free, all};
}

int64_t Scheduler::begun() const {
  MutexLock lock(mutex_);
  return begun_;
}

int Scheduler::queued() const {
  MutexLock lock(mutex_);
  return queue_.size();
}

int Scheduler::waiting_flows() const {
  MutexLock lock(mutex_);
  return queue_.flows();
}

std::vector<WaitingFlow> Scheduler::longest_flows(size_t most) const {
  MutexLock lock(mutex_);
  return queue_.Longest(most);
}

}  // namespace gemmd
