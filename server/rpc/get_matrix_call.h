// One GetMatrix call. The locking is that of MultiplyStream.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/engine/engine.h"
#include "server/engine/mutex.h"
#include "server/rpc/live_calls.h"
#include "server/rpc/outbox.h"
#include "server/rpc/service_context.h"

namespace gemmd {

class GetMatrixCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                            public DownloadListener,
                            public LiveCall {
 public:
  // The reactor lives until the call has ended and the engine is done with it.
  static GetMatrixCall* Begin(ServiceContext& service, grpc::CallbackServerContext* call,
                              const grpc::ByteBuffer& request);

  GetMatrixCall(ServiceContext& service, grpc::CallbackServerContext* call)
      : service_(service), call_(call) {}

  // From gRPC.
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  // From the engine, whose own draining ends the call.
  void OnBytes(ResultPiece piece) override;
  void OnDone(absl::Status status) override;
  void BeginDrain() override {}

 private:
  absl::Status Start(const grpc::ByteBuffer& request);
  void Send(grpc::ByteBuffer message);
  // Takes every step that is due.
  void Advance();

  ServiceContext& service_;
  grpc::CallbackServerContext* const call_;
  const absl::Time began_ = absl::Now();

  Mutex mutex_;
  Outbox outbox_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Download> download_ ABSL_GUARDED_BY(mutex_);  // once started
  std::optional<absl::Status> outcome_ ABSL_GUARDED_BY(mutex_);
  int busy_ ABSL_GUARDED_BY(mutex_) = 1;  // Begin
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gemmd
