// The common part of the calls that answer one request with a stream of messages. The
// locking is that of MultiplyStream.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/rpc/call_guard.h"
#include "server/rpc/live_calls.h"
#include "server/rpc/outbox.h"
#include "server/rpc/service_context.h"

namespace gemmd {

class WriteCall : public grpc::ServerWriteReactor<grpc::ByteBuffer>, public LiveCall {
 public:
  // Starts `call` and returns it for gRPC. It lives until it has ended and its work has
  // released it.
  static WriteCall* Begin(std::shared_ptr<WriteCall> call, const grpc::ByteBuffer& request);

  // Called by gRPC.
  void OnWriteDone(bool ok) final;
  void OnCancel() final;
  void OnDone() final;
  void CheckWaits(const Patience& patience) final;

 protected:
  // `method` is a literal.
  WriteCall(ServiceContext& service, grpc::CallbackServerContext* call, const char* method)
      : service_(service), call_(call), method_(method), guard_(service, call, method) {}

  // Starts the work, or returns why it cannot.
  virtual absl::Status Start(const grpc::ByteBuffer& request) = 0;
  // Ends the work soon with `why`, if it has begun.
  virtual void CancelWork(const absl::Status& why) = 0;

  // Ends the call soon, whether or not its work has begun. The first call counts.
  void Stop(const absl::Status& why);
  // Appends a message to those that wait. Drops it if the call was stopped.
  void Send(grpc::ByteBuffer message);
  // Takes all steps that are due. Call it after a change to the state below.
  void Advance();

  ServiceContext& service_;
  grpc::CallbackServerContext* const call_;
  const absl::Time began_ = SteadyNow();

  Mutex mutex_;
  CondVar changed_;  // a message was written, or the call stopped
  Outbox outbox_ ABSL_GUARDED_BY(mutex_);
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);                 // why, once it is to end
  std::optional<absl::Status> outcome_ ABSL_GUARDED_BY(mutex_);  // once the work has ended

 private:
  const char* const method_;
  CallGuard guard_ ABSL_GUARDED_BY(mutex_);
  int busy_ ABSL_GUARDED_BY(mutex_) = 1;  // Begin
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gemmd
