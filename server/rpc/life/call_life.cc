#include "server/rpc/life/call_life.h"

#include <deque>
#include <utility>

#include "server/rpc/context/status.h"

namespace gemmd {

void CallLife::GoLive(absl::FunctionRef<absl::Status()> start) {
  // Whoever calls back later sees what the constructors wrote.
  Enter();
  service_.live_calls.Add(shared_from_this());
  absl::Status status = identified_.ok() ? start() : identified_.status();
  if (!status.ok()) {
    MutexLock lock(mutex_);
    outcome_ = std::move(status);
  }
  Leave();
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
  Enter();
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
    guard_.SendBegins();
    return true;
  }
  step.write = outbox_.Next();
  if (step.write != nullptr) guard_.SendBegins();
  step.read = !reading_ && stopped_.ok() && WantsRead();
  if (step.read) reading_ = true;
  if (!step.read && step.write == nullptr) return false;
  ++busy_;
  return true;
}

}  // namespace gemmd
