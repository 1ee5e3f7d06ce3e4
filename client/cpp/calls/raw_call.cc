#include "client/cpp/calls/raw_call.h"

#include <utility>

#include "client/cpp/calls/clock.h"

namespace gemmd::client {

std::function<NextMessage(grpc::ByteBuffer*)> OnlyMessage(const grpc::ByteBuffer& message) {
  return [message](grpc::ByteBuffer* to) {
    *to = message;
    return NextMessage::kLast;
  };
}

std::shared_ptr<RawCall> RawCall::Create(RawCallSpec spec) {
  return std::shared_ptr<RawCall>(new RawCall(std::move(spec)));
}

void RawCall::Start(grpc::GenericStub& stub) {
  self_ = shared_from_this();
  if (spec_.deadline != absl::InfiniteFuture()) {
    context_.set_deadline(GrpcTime(spec_.deadline));
  }
  if (spec_.prepare != nullptr) spec_.prepare(context_);
  stub.PrepareBidiStreamingCall(&context_, spec_.method, {}, this);
  StartRead(&incoming_);
  Write();
  StartCall();
  std::unique_lock<std::mutex> lock(mutex_);
  started_ = true;
  const bool cancelled = cancelled_;
  lock.unlock();
  if (cancelled) context_.TryCancel();
}

// gRPC 1.51 may lose the end of a call that is cancelled while it starts: neither the
// cancellation nor its deadline ends it then.
void RawCall::Cancel() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
    if (!started_) return;
  }
  context_.TryCancel();
}

void RawCall::Write() {
  for (;;) {
    const NextMessage next = spec_.next(&outgoing_);
    more_to_write_ = next == NextMessage::kMore || next == NextMessage::kLater;
    if (next == NextMessage::kMore) return StartWrite(&outgoing_);
    if (next == NextMessage::kLast) return StartWriteLast(&outgoing_, grpc::WriteOptions());
    if (next == NextMessage::kNone) return StartWritesDone();
    std::lock_guard<std::mutex> lock(mutex_);
    // A message that came while `next` looked may be the one that it lacked.
    if (!std::exchange(received_, false)) {
      waiting_ = true;
      return;
    }
  }
}

void RawCall::Received() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    received_ = !waiting_;
    if (!std::exchange(waiting_, false)) return;
  }
  Write();
}

void RawCall::OnWriteDone(bool ok) {
  // A write that failed is followed by OnDone with the reason.
  if (ok && more_to_write_) Write();
}

void RawCall::OnReadDone(bool ok) {
  if (!ok) return;
  if (error_.ok()) {
    error_ = spec_.on_message(incoming_);
    if (!error_.ok()) context_.TryCancel();
  }
  StartRead(&incoming_);
  // The call does not end before this reaction has, whatever is written meanwhile.
  Received();
}

void RawCall::OnDone(const grpc::Status& status) {
  const std::shared_ptr<RawCall> self = std::move(self_);
  // First drop their holds on the caller's memory.
  outgoing_.Clear();
  spec_.next = nullptr;
  spec_.on_message = nullptr;
  const auto done = std::move(spec_.on_done);
  done(error_.ok() ? FromGrpc(status) : error_);
}

}  // namespace gemmd::client
