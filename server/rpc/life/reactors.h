// Joins CallLife to gRPC's reactors. One base class for each kind of RPC.
#pragma once

#include <utility>

#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
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

}  // namespace gemmd
