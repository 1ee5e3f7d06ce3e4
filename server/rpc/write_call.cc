#include "server/rpc/write_call.h"

#include <deque>
#include <utility>

#include "server/base/clock.h"
#include "server/rpc/status.h"

namespace gemmd {

WriteCall* WriteCall::Begin(std::shared_ptr<WriteCall> call, const grpc::ByteBuffer& request) {
  WriteCall* const raw = call.get();
  raw->service_.live_calls.Add(std::move(call));
  absl::Status status = raw->Start(request);
  {
    MutexLock lock(raw->mutex_);
    --raw->busy_;
    if (!status.ok()) raw->outcome_ = std::move(status);
  }
  raw->Advance();
  return raw;
}

void WriteCall::OnWriteDone(bool) {
  // After a write that failed the call is cancelled, and OnCancel does the rest.
  grpc::ByteBuffer written;
  {
    MutexLock lock(mutex_);
    ++busy_;
    outbox_.OnWritten(written);
    guard_.SendEnds();
  }
  written.Clear();
  changed_.NotifyAll();
  {
    MutexLock lock(mutex_);
    --busy_;
  }
  Advance();
}

void WriteCall::OnCancel() {
  absl::Status why;
  std::deque<grpc::ByteBuffer> unsent;
  {
    MutexLock lock(mutex_);
    ++busy_;
    why = guard_.why().ok() ? WhyCancelled(*call_) : guard_.why();
    stopped_.Update(why);
    unsent = outbox_.TakeAll();
  }
  unsent.clear();
  Stop(why);
  {
    MutexLock lock(mutex_);
    --busy_;
  }
  Advance();
}

void WriteCall::OnDone() {
  RpcEnd end;
  {
    // All of it, as in the other calls: how gRPC orders this after the constructor,
    // a sanitizer cannot see.
    MutexLock lock(mutex_);
    end = {.method = method_, .code = outcome_->code(), .elapsed = SteadyNow() - began_};
    guard_.CallIsDone();
  }
  service_.on_end(end);
  service_.live_calls.Remove(this);
}

void WriteCall::CheckWaits(const Patience& patience) {
  const CallEnding ending = [&] {
    MutexLock lock(mutex_);
    return guard_.CheckSend(patience);
  }();
}

void WriteCall::Stop(const absl::Status& why) {
  {
    MutexLock lock(mutex_);
    stopped_.Update(why);
  }
  changed_.NotifyAll();
  CancelWork(why);
}

void WriteCall::Send(grpc::ByteBuffer message) {
  {
    MutexLock lock(mutex_);
    if (stopped_.ok()) outbox_.Push(message);
  }
  message.Clear();  // one that was not taken is let go unlocked
  Advance();
}

void WriteCall::Advance() {
  for (;;) {
    const grpc::ByteBuffer* write = nullptr;
    std::optional<grpc::Status> finish;
    {
      MutexLock lock(mutex_);
      if (finished_) return;
      if (outcome_.has_value() && busy_ == 0 && outbox_.idle()) {
        finished_ = true;
        finish = ToGrpc(*outcome_);
      } else {
        write = outbox_.Next();
        if (write == nullptr) return;
        ++busy_;
      }
      guard_.SendBegins();
    }
    if (finish.has_value()) {
      Finish(*std::move(finish));
      return;  // gRPC may be done with this object
    }
    StartWrite(write);
    MutexLock lock(mutex_);
    --busy_;
  }
}

}  // namespace gemmd
