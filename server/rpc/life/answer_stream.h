// The common part of the calls that answer one request with a stream of messages.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/base/mutex.h"
#include "server/rpc/life/reactors.h"

namespace gemmd {

class AnswerStream : public ServerStreamingCall {
 public:
  // Starts `call` and returns it for gRPC. It lives until it has ended and its work has
  // released it.
  static AnswerStream* Begin(const std::shared_ptr<AnswerStream>& call,
                             const grpc::ByteBuffer& request);

 protected:
  using ServerStreamingCall::ServerStreamingCall;

  // Starts the work, or returns why it cannot.
  virtual absl::Status Start(const grpc::ByteBuffer& request) = 0;
  // Ends the work soon with `why`, if it has begun.
  virtual void CancelWork(const absl::Status& why) = 0;

  // Ends the call soon, whether or not its work has begun. The first call counts.
  void Stop(const absl::Status& why);

  CondVar changed_;  // a message was written, or the call stopped

 private:
  void OnWritten() final { changed_.NotifyAll(); }
  void OnCancelled() final;
};

}  // namespace gemmd
