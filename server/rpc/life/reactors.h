// Joins CallLife to gRPC's reactors. One base class for each kind of RPC.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/base/mutex.h"
#include "server/rpc/life/call_life.h"

namespace gemmd {

template <typename Reactor>
class LiveReactor : public Reactor, public CallLife {
 public:
  void OnCancel() final { Cancelled(); }
  void OnDone() final { Ended(); }

 protected:
  using CallLife::CallLife;

 private:
  static void FinishCall(CallLife& call, grpc::Status status) {
    static_cast<LiveReactor&>(call).Finish(std::move(status));
  }
  CallLife::GrpcFinish FinishFunction() const final { return &FinishCall; }
};

// A reactor that receives messages.
template <typename Base>
class Reading : public Base {
 public:
  void OnReadDone(bool ok) final { this->ReadEnds(ok); }

 protected:
  using Base::Base;

 private:
  void GrpcRead(grpc::ByteBuffer* into) final { this->StartRead(into); }
};

// A reactor that sends a stream of messages.
template <typename Base>
class Writing : public Base {
 public:
  void OnWriteDone(bool) final { this->WriteEnds(); }

 protected:
  using Base::Base;

 private:
  void GrpcWrite(const grpc::ByteBuffer* message) final { this->StartWrite(message); }
};

// A call with one message each way. gRPC would wake another thread of its own to tell of the end.
// Here it tells at once, on the thread that sees the end, which may be inside Finish: CallLife
// holds no lock around that, and touches nothing after it.
class UnaryCall : public LiveReactor<grpc::ServerUnaryReactor> {
 protected:
  using LiveReactor::LiveReactor;

 private:
  bool InternalInlineable() final { return true; }
};
using ClientStreamingCall = Reading<LiveReactor<grpc::ServerReadReactor<grpc::ByteBuffer>>>;
using ServerStreamingCall = Writing<LiveReactor<grpc::ServerWriteReactor<grpc::ByteBuffer>>>;
using BidiStreamingCall =
    Reading<Writing<LiveReactor<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>>>>;

// The common part of the calls that answer one request with a stream of messages.
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
