// One PutMatrix call. The locking is that of MultiplyStream.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/engine/engine.h"
#include "server/rpc/call_guard.h"
#include "server/rpc/codec.h"
#include "server/rpc/live_calls.h"
#include "server/rpc/payload_clock.h"
#include "server/rpc/service_context.h"

namespace gemmd {

class PutMatrixCall final : public grpc::ServerReadReactor<grpc::ByteBuffer>, public LiveCall {
 public:
  // The reactor lives until the call has ended and the engine is done with it.
  static PutMatrixCall* Begin(ServiceContext& service, grpc::CallbackServerContext* call,
                              grpc::ByteBuffer* response);

  PutMatrixCall(ServiceContext& service, grpc::CallbackServerContext* call,
                grpc::ByteBuffer* response)
      : service_(service), call_(call), response_(response), guard_(service, call, "PutMatrix") {}

  void OnReadDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  void BeginDrain() override;
  void CheckWaits(const Patience& patience) override;

 private:
  // Takes all steps that are due.
  void Advance();
  bool MayFinish() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  grpc::Status Conclude() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Handles one received message.
  absl::Status Handle();
  absl::Status HandleHeader(const gemm::v1::PutMatrixHeader& header);
  absl::Status HandleChunk(MatrixBytes chunk, size_t message_bytes);
  // Handles the client's half-close.
  absl::Status HandleEnd();
  absl::Status BeginUpload(UploadSpec spec);
  void Append(MatrixBytes chunk, size_t accounted_bytes);
  // Stops reading and ends the call with `why`.
  void Fail(absl::Status why);
  void OnUploadDone(absl::StatusOr<UploadResult> result);
  void Consumed(size_t bytes);
  void CountUnconsumed(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ServiceContext& service_;
  grpc::CallbackServerContext* const call_;
  grpc::ByteBuffer* const response_;
  const absl::Time began_ = SteadyNow();

  // Used only by the reading side.
  grpc::ByteBuffer incoming_;  // the read under way, or the message being handled
  uint64_t messages_ = 0;
  // A generator waits for the half-close, so that a call that wrongly sends chunks, too,
  // leaves no matrix behind.
  std::optional<UploadSpec> to_generate_;

  Mutex mutex_;
  CallGuard guard_ ABSL_GUARDED_BY(mutex_);
  PayloadClock payload_clock_ ABSL_GUARDED_BY(mutex_);
  absl::Duration last_message_ ABSL_GUARDED_BY(mutex_);     // by payload_clock_: when it came
  std::shared_ptr<Upload> upload_ ABSL_GUARDED_BY(mutex_);  // once started
  std::optional<absl::StatusOr<UploadResult>> outcome_ ABSL_GUARDED_BY(mutex_);
  size_t unconsumed_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int busy_ ABSL_GUARDED_BY(mutex_) = 1;  // Begin
  bool began_upload_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool input_open_ ABSL_GUARDED_BY(mutex_) = true;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::StatusCode final_code_ ABSL_GUARDED_BY(mutex_) = absl::StatusCode::kOk;
};

}  // namespace gemmd
