#include "server/engine/core/scheduler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/clock.h"

namespace gemmd {
namespace {

// To three digits or so, for a sentence.
absl::Duration Rounded(absl::Duration time) {
  const absl::Duration unit = time >= absl::Seconds(1)        ? absl::Milliseconds(10)
                              : time >= absl::Milliseconds(1) ? absl::Microseconds(10)
                                                              : absl::Nanoseconds(10);
  return absl::Trunc(time, unit);
}

}  // namespace

StreamLease& StreamLease::operator=(StreamLease&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  scheduler_ = std::exchange(other.scheduler_, nullptr);
  stream_ = std::exchange(other.stream_, nullptr);
  return *this;
}

void StreamLease::Reset() {
  Stream* stream = std::exchange(stream_, nullptr);
  if (stream != nullptr) scheduler_->Release(stream);
}

bool QueueLimit::TryTake() {
  MutexLock lock(mutex_);
  if (used_ >= limit_) return false;
  ++used_;
  return true;
}

void QueueLimit::Return() {
  MutexLock lock(mutex_);
  --used_;
}

Gauge QueueLimit::gauge() const {
  MutexLock lock(mutex_);
  return {used_, limit_};
}

void QueuePace::OnTurn(absl::Time now) {
  // As many as smooth out a mix of jobs and still follow the load.
  constexpr int kTurns = 64;
  if (last_turn_.has_value()) {
    turns_ = std::min(turns_ + 1, kTurns);
    mean_ += (now - *last_turn_ - mean_) / turns_;
  }
  last_turn_ = now;
}

Scheduler::Scheduler(Device& device, QueueLimit& limit, absl::Duration max_wait)
    : device_(device),
      stream_count_(static_cast<int>(device.compute_streams().size())),
      limit_(limit),
      max_wait_(max_wait) {
  for (const std::unique_ptr<Stream>& stream : device.compute_streams()) {
    free_.push_back(stream.get());
  }
}

absl::Status Scheduler::Submit(std::shared_ptr<Runnable> job) {
  Stream* stream = nullptr;
  {
    MutexLock lock(mutex_);
    if (!free_.empty()) {
      stream = free_.back();
      free_.pop_back();
      ++begun_;
    } else if (absl::Status status = CheckWaitLocked(); !status.ok()) {
      return status;
    } else if (limit_.TryTake()) {
      waiting_.push_back(std::move(job));
      return absl::OkStatus();
    } else {
      const Gauge queue = limit_.gauge();
      return absl::ResourceExhaustedError(
          absl::StrCat(queue.used, " jobs wait for a stream, the limit (--max-queued-jobs) is ",
                       queue.limit, ": try again later"));
    }
  }
  StreamLease lease(this, stream);
  job->Prepare();
  device_.Execute(
      [job = std::move(job), lease = std::move(lease)]() mutable { job->Run(std::move(lease)); });
  return absl::OkStatus();
}

absl::Duration Scheduler::WaitOfNext() const {
  return free_.empty() ? pace_.TimeFor(waiting_.size() + 1) : absl::ZeroDuration();
}

absl::Status Scheduler::CheckWaitLocked() const {
  const absl::Duration wait = WaitOfNext();
  if (wait <= max_wait_ || waiting_.size() < static_cast<size_t>(stream_count_))
    return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the job would wait about ", absl::FormatDuration(Rounded(wait)), " for a stream of ",
      device_.info().name, " (", waiting_.size(), " are before it, one begins every ",
      absl::FormatDuration(Rounded(pace_.mean())), "), the limit (--max-queue-wait) is ",
      absl::FormatDuration(max_wait_), ": try again later"));
}

absl::Status Scheduler::CheckWait() const {
  MutexLock lock(mutex_);
  return CheckWaitLocked();
}

absl::Duration Scheduler::estimated_wait() const {
  MutexLock lock(mutex_);
  return WaitOfNext();
}

void Scheduler::Withdraw(const Runnable* job) {
  std::shared_ptr<Runnable> withdrawn;  // outlives the lock
  MutexLock lock(mutex_);
  const auto it = std::find_if(waiting_.begin(), waiting_.end(),
                               [&](const auto& waiting) { return waiting.get() == job; });
  if (it == waiting_.end()) return;
  withdrawn = std::move(*it);
  waiting_.erase(it);
  limit_.Return();
}

void Scheduler::Release(Stream* stream) {
  std::shared_ptr<Runnable> next;
  {
    MutexLock lock(mutex_);
    if (waiting_.empty()) {
      free_.push_back(stream);
      pace_.OnIdle();
    } else {
      pace_.OnTurn(SteadyNow());
      next = std::move(waiting_.front());
      waiting_.pop_front();
      limit_.Return();
      ++begun_;
    }
  }
  if (next != nullptr) next->Run(StreamLease(this, stream));
}

Gauge Scheduler::streams() const {
  MutexLock lock(mutex_);
  return {stream_count_ - static_cast<int>(free_.size()), stream_count_};
}

int64_t Scheduler::begun() const {
  MutexLock lock(mutex_);
  return begun_;
}

int Scheduler::queued() const {
  MutexLock lock(mutex_);
  return static_cast<int>(waiting_.size());
}

}  // namespace gemmd
