#include "server/engine/policy/queue_bounds.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/base/clock.h"
#include "server/engine/bounds/bound_error.h"

namespace gemmd {
namespace {

// An estimate of the queue is exceeded by this much now and then.
constexpr double kMargin = 1.25;

}  // namespace

bool QueueLimit::TryTake(int held) {
  MutexLock lock(mutex_);
  const int reserved = held >= reserve() ? reserve() : 0;
  if (used_ >= limit_ - reserved) return false;
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

absl::Status QueueLimit::Full(int held, absl::string_view device) const {
  const Gauge queue = gauge();
  return BoundError(
      {.bound = "max-queued-jobs", .retry_after = kRetrySoon},
      absl::StrCat(queue.used, " jobs wait for a stream, ", held, " of them this caller's on ",
                   device, "; the limit (--max-queued-jobs) is ", queue.limit,
                   queue.used < queue.limit
                       ? absl::StrCat(", the last ", reserve(), " for callers with fewer than that")
                       : "",
                   ": try again later"));
}

void QueuePace::OnWait(absl::Time now) {
  if (idle_since_.has_value() && now - *idle_since_ > kQuiet) *this = QueuePace();
  idle_since_.reset();
  if (!unmoved_since_.has_value()) unmoved_since_ = now;
}

void QueuePace::OnIdle(absl::Time now) {
  last_turn_.reset();
  unmoved_since_.reset();
  if (!idle_since_.has_value()) idle_since_ = now;
}

void QueuePace::OnTurn(absl::Time now, absl::Duration cost) {
  // As many as smooth out a mix of jobs and still follow the load.
  constexpr int kTurns = 64;
  if (last_turn_.has_value()) {
    turns_ = std::min(turns_ + 1, kTurns);
    mean_time_ += (now - *last_turn_ - mean_time_) / turns_;
    mean_cost_ += (cost - mean_cost_) / turns_;
  }
  last_turn_ = now;
  unmoved_since_ = now;
}

absl::Duration QueuePace::TimeFor(absl::Duration cost) const {
  if (turns_ == 0) return absl::ZeroDuration();
  return mean_time_ * absl::FDivDuration(cost, mean_cost_);
}

absl::Duration QueuePace::Unmoved(absl::Time now) const {
  return unmoved_since_.has_value() ? now - *unmoved_since_ : absl::ZeroDuration();
}

absl::Duration QueuePace::WaitBehind(absl::Duration cost, absl::Time now) const {
  return std::max(TimeFor(cost) + between_turns(), Unmoved(now));
}

absl::Status CheckDeadline(const StreamClaim& claim, absl::string_view device) {
  const absl::Duration left = claim.deadline - SteadyNow();
  const absl::Duration takes = claim.cost.lately;
  if (left <= absl::ZeroDuration()) {
    return absl::DeadlineExceededError("the deadline passed before the job was queued");
  }
  if (takes <= left) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("the job would take about ", Rounded(takes), " on ", device,
                   ", as such jobs of this caller lately did, but its deadline is in ",
                   Rounded(left), ": allow it more time"));
}

absl::Status CheckWaitOf(const StreamClaim& claim, const QueueWait& wait) {
  const absl::Duration left = claim.deadline - SteadyNow();
  const absl::Duration takes = claim.cost.lately;
  const bool too_long = wait.time > wait.most;
  if (!too_long && wait.time * kMargin + takes <= left) return absl::OkStatus();
  std::string why = absl::StrCat("the job would wait about ", Rounded(wait.time),
                                 " for a stream of ", wait.device, " (", wait.jobs, " jobs wait, ",
                                 wait.jobs_of_flow, " of them this caller's");
  if (too_long) {
    absl::StrAppend(&why, "), the limit (--max-queue-wait) is ", absl::FormatDuration(wait.most),
                    ": try again later");
  } else {
    absl::StrAppend(
        &why, "), perhaps a quarter more,",
        takes > absl::ZeroDuration() ? absl::StrCat(" and then take ", Rounded(takes), ",") : "",
        " but its deadline is in ", Rounded(left), ": allow it more time, or try again later");
  }
  const absl::Duration allowed = too_long ? wait.most : (left - takes) / kMargin;
  return BoundError({.bound = too_long ? "max-queue-wait" : "deadline",
                     .retry_after = std::max(kRetrySoon, wait.time - allowed)},
                    why);
}

}  // namespace gemmd
