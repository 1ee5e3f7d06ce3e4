#include "client/cpp/raw_call.h"

#include <utility>

namespace gemmd::client {

std::shared_ptr<RawCall> RawCall::Create(RawCallSpec spec) {
  return std::shared_ptr<RawCall>(new RawCall(std::move(spec)));
}

void RawCall::Start(grpc::GenericStub& stub) {
  self_ = shared_from_this();
  if (spec_.deadline != absl::InfiniteFuture()) {
    context_.set_deadline(absl::ToChronoTime(spec_.deadline));
  }
  if (spec_.prepare != nullptr) spec_.prepare(context_);
  stub.PrepareBidiStreamingCall(&context_, spec_.method, {}, this);
  StartRead(&incoming_);
  Write();
  StartCall();
}

void RawCall::Write() {
  more_to_write_ = spec_.next(&outgoing_);
  if (more_to_write_) {
    StartWrite(&outgoing_);
  } else {
    StartWriteLast(&outgoing_, grpc::WriteOptions());
  }
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
}

void RawCall::OnDone(const grpc::Status& status) {
  const std::shared_ptr<RawCall> self = std::move(self_);
  // What they hold of the caller's memory goes first.
  outgoing_.Clear();
  spec_.next = nullptr;
  spec_.on_message = nullptr;
  const auto done = std::move(spec_.on_done);
  done(error_.ok() ? FromGrpc(status) : error_);
}

}  // namespace gemmd::client
