#include "server/rpc/life/call_life.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/bounds/bound_error.h"
#include "server/engine/bounds/caller_quota.h"
#include "server/rpc/context/status.h"

namespace gemmd {
namespace {

// A message has them on the wire at most: its prefix, a frame, and a record of TLS.
constexpr int64_t kBytesAroundMessage = 64;

constexpr char kDrainingMessage[] = "the server is draining: call another one, or later";

}  // namespace

void CallLife::GoLive(absl::FunctionRef<absl::Status()> start) {
  // Whoever calls back later sees what the constructors wrote.
  Enter();
  const bool draining = service_.live_calls.Add(shared_from_this());
  absl::Status status =
      draining && !begins_while_draining() ? absl::UnavailableError(kDrainingMessage) : CountCall();
  if (status.ok()) status = start();
  if (!status.ok()) {
    MutexLock lock(mutex_);
    outcome_ = std::move(status);
  }
  Leave();
}

void CallLife::GoLiveAtItsRate(uint64_t request_bytes, std::function<absl::Status()> start) {
  {
    MutexLock lock(mutex_);
    request_bytes_ = request_bytes;
  }
  GoLive([this, &start] {
    {
      MutexLock lock(mutex_);
      if (!MayStart()) return WaitToStart(std::move(start));
      traffic_.Charge(request_bytes_);
    }
    return start();
  });
}

absl::Status CallLife::WaitToStart(std::function<absl::Status()> start) {
  if (draining_) return absl::UnavailableError(kDrainingMessage);
  if (traffic_.MayWait(request_bytes_)) {
    start_ = std::move(start);
    return absl::OkStatus();
  }
  traffic_.Charge(request_bytes_);
  const std::string& caller = (*identified_)->name;
  return BoundError(
      {.bound = "bytes-per-second",
       .caller = caller,
       .retry_after = std::max(traffic_.ready_at() - SteadyNow(), kRetrySoon)},
      absl::StrCat("bytes-per-second: ", CallerHas(caller), " moved more than ", traffic_.rate(),
                   " bytes in a second, its limit (--quotas-file), and requests of "
                   "as many wait already: try again later"));
}

absl::Status CallLife::CountCall() {
  if (!identified_.ok()) return identified_.status();
  if (service_.on_call != nullptr) bytes_read_ = service_.on_call(context_->peer());
  uint64_t request_bytes;
  {
    MutexLock lock(mutex_);
    request_bytes = request_bytes_;
  }
  if (request_bytes > 0) CountRead(request_bytes);
  absl::StatusOr<TrafficShare> share =
      service_.traffic.Begin(service_.identity.QuotaOf(**identified_), request_bytes);
  if (!share.ok()) return share.status();
  MutexLock lock(mutex_);
  traffic_ = *std::move(share);
  return absl::OkStatus();
}

void CallLife::CountRead(uint64_t bytes) {
  if (bytes_read_ == nullptr) return;
  bytes_read_->fetch_add(static_cast<int64_t>(bytes) + kBytesAroundMessage,
                         std::memory_order_relaxed);
}

CallerQuotaPtr CallLife::QuotaNow(const Caller& caller) {
  CallerQuotaPtr quota = service_.identity.QuotaOf(caller);
  MutexLock lock(mutex_);
  traffic_.Use(quota);
  return quota;
}

void CallLife::Charge(uint64_t bytes) {
  MutexLock lock(mutex_);
  traffic_.Charge(bytes);
}

bool CallLife::RateAllows() {
  const absl::Time at = traffic_.ready_at();
  const bool allows = at <= SteadyNow();
  OnHeldBack(!allows);
  if (allows) waits_for_rate_ = false;
  if (!allows && !std::exchange(waits_for_rate_, true)) service_.traffic.OnReachedRate();
  if (!allows && !std::exchange(waking_, true)) {
    // Not later: what waits is forgotten soon after the call has ended.
    constexpr absl::Duration kLongest = absl::Seconds(1);
    service_.traffic.timer().Schedule(std::min(at, SteadyNow() + kLongest),
                                      [weak = weak_from_this()] {
                                        if (const auto live = weak.lock())
                                          static_cast<CallLife&>(*live).OnWake();
                                      });
  }
  return allows;
}

void CallLife::OnWake() {
  {
    MutexLock lock(mutex_);
    waking_ = false;
    if (finished_) return;
    ++busy_;  // gRPC keeps the context until then
  }
  absl::StatusOr<CallerPtr> now = CallerAtWake();
  if (now.ok()) QuotaNow(**now);
  std::function<absl::Status()> start;
  {
    MutexLock lock(mutex_);
    if (!now.ok()) DropStart(now.status());
    if (start_ != nullptr && MayStart()) {
      identified_ = std::move(now);
      start.swap(start_);
      traffic_.StopWaiting();
      traffic_.Charge(request_bytes_);
    }
  }
  if (start != nullptr) {
    absl::Status status = start();
    MutexLock lock(mutex_);
    if (!status.ok()) outcome_ = std::move(status);
  }
  Leave();
}

absl::StatusOr<CallerPtr> CallLife::CallerAtWake() {
  absl::StatusOr<CallerPtr> before;
  {
    // A call that has begun asks where it begins more work.
    MutexLock lock(mutex_);
    if (start_ == nullptr) return identified_;
    before = identified_;
  }
  absl::StatusOr<CallerPtr> now = CallerNow();
  if (!now.ok() || (*now)->name == (*before)->name) return now;
  return absl::UnauthenticatedError(
      "the credentials are those of another caller since the call came: begin anew");
}

void CallLife::DropStart(const absl::Status& why) {
  if (start_ == nullptr) return;
  start_ = nullptr;
  traffic_.Charge(request_bytes_);
  outcome_ = why;
}

void CallLife::BeginDrain() {
  {
    MutexLock lock(mutex_);
    draining_ = true;
    if (!begins_while_draining()) DropStart(absl::UnavailableError(kDrainingMessage));
  }
  OnWake();
}

void CallLife::Enter() {
  MutexLock lock(mutex_);
  ++busy_;
}

void CallLife::Leave() {
  {
    MutexLock lock(mutex_);
    --busy_;
  }
  Advance();
}

void CallLife::ReadEnds(bool ok) {
  {
    MutexLock lock(mutex_);
    ++busy_;
    payload_clock_.Stop();
    if (ok) traffic_.Charge(incoming_.Length());
  }
  if (ok) CountRead(incoming_.Length());
  if (ok) {
    OnMessage(incoming_);
  } else {
    OnInputEnd();
  }
  {
    MutexLock lock(mutex_);
    --busy_;
    reading_ = false;
  }
  Advance();
}

void CallLife::WriteEnds() {
  // After a write that failed the call is cancelled, and Cancelled does the rest.
  grpc::ByteBuffer written;
  {
    MutexLock lock(mutex_);
    ++busy_;
    outbox_.OnWritten(written);
    traffic_.Charge(written.Length());
    guard_.SendEnds();
  }
  written.Clear();
  OnWritten();
  Leave();
}

void CallLife::Cancelled() {
  std::deque<grpc::ByteBuffer> unsent;
  {
    MutexLock lock(mutex_);
    ++busy_;
    stopped_.Update(WhyEnded());
    unsent = outbox_.TakeAll();
    DropStart(stopped_);
  }
  unsent.clear();
  OnCancelled();
  Leave();
}

void CallLife::Ended() {
  absl::StatusCode code;
  {
    MutexLock lock(mutex_);
    code = final_code_;
    guard_.CallIsDone();
    traffic_.Reset();
  }
  ReportEnd(code);
  service_.live_calls.Remove(this);
}

void CallLife::ReportEnd(absl::StatusCode code) {
  {
    MutexLock lock(mutex_);
    if (std::exchange(reported_, true)) return;
  }
  service_.on_end({.method = method_,
                   .code = code,
                   .elapsed = SteadyNow() - began_,
                   .caller = identified_.ok() ? absl::string_view(caller().name) : ""});
}

void CallLife::CheckWaits(const Patience& patience) {
  CheckPayload(patience);
  const absl::Duration age = service_.limits.max_connection_age;
  if (age > absl::ZeroDuration() && SteadyNow() - began_ >= age) GrowOld();
  const CallEnding ending = [&] {
    MutexLock lock(mutex_);
    return guard_.CheckSend(patience);
  }();
}

absl::Status CallLife::WhyEnded() const {
  return guard_.why().ok() ? WhyCancelled(*context_) : guard_.why();
}

void CallLife::Send(grpc::ByteBuffer message) {
  {
    MutexLock lock(mutex_);
    if (stopped_.ok()) outbox_.Push(message);
  }
  message.Clear();  // one that was not taken is let go unlocked
  Advance();
}

void CallLife::Advance() {
  for (;;) {
    Step step;
    {
      MutexLock lock(mutex_);
      if (!Decide(step)) return;
    }
    if (step.finish.has_value()) {
      step.finish_with(*this, ToGrpc(*step.finish));
      return;  // gRPC may be done with this object
    }
    if (step.write != nullptr) GrpcWrite(step.write);
    if (step.read) GrpcRead(&incoming_);
    MutexLock lock(mutex_);
    --busy_;
  }
}

bool CallLife::Decide(Step& step) {
  if (finished_) return false;
  if (busy_ == 0 && outbox_.idle()) step.finish = Outcome();
  if (step.finish.has_value()) {
    step.finish_with = FinishFunction();
    finished_ = true;
    final_code_ = step.finish->code();
    traffic_.Answered();
    guard_.SendBegins();
    return true;
  }
  step.write = outbox_.Next();
  if (step.write != nullptr) guard_.SendBegins();
  step.read = !reading_ && stopped_.ok() && WantsRead() && RateAllows();
  if (step.read) {
    reading_ = true;
    payload_clock_.Start();
  }
  if (!step.read && step.write == nullptr) return false;
  ++busy_;
  return true;
}

}  // namespace gemmd
