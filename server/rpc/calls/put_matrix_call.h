// One PutMatrix call.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/engine/engine.h"
#include "server/rpc/codec/codec.h"
#include "server/rpc/context/method.h"
#include "server/rpc/context/service_context.h"
#include "server/rpc/life/reactors.h"

namespace gemmd {

class PutMatrixCall final : public ClientStreamingCall {
 public:
  // The reactor lives until the call has ended and the engine is done with it.
  static PutMatrixCall* Begin(ServiceContext& service, grpc::CallbackServerContext* call,
                              grpc::ByteBuffer* response);

  PutMatrixCall(ServiceContext& service, grpc::CallbackServerContext* call,
                grpc::ByteBuffer* response)
      : ClientStreamingCall(service, call, MethodOf<gemm::v1::PutMatrixRequest>()),
        response_(response) {}

  void BeginDrain() override;

 private:
  bool WantsRead() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnMessage(grpc::ByteBuffer& message) override;
  void OnInputEnd() override;
  void OnCancelled() override;
  void OnHeldBack(bool held_back) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CheckPayload(const Patience& patience) override;

  absl::Status Handle(grpc::ByteBuffer& incoming);
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

  grpc::ByteBuffer* const response_;  // written before outcome_ is OK

  // Used only by the reading side.
  uint64_t messages_ = 0;
  // A generator waits for the half-close, so that a call that wrongly sends chunks, too,
  // leaves no matrix behind.
  std::optional<UploadSpec> to_generate_;

  // From when the caller's rate lets the server read no more of the call until its next message
  // is there: the engine sees it, too.
  const std::shared_ptr<std::atomic<bool>> held_back_ = std::make_shared<std::atomic<bool>>(false);
  absl::Duration last_message_ ABSL_GUARDED_BY(mutex_);     // by payload_clock_: when it came
  std::shared_ptr<Upload> upload_ ABSL_GUARDED_BY(mutex_);  // once started
  size_t unconsumed_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool began_upload_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);  // after that
  bool input_open_ ABSL_GUARDED_BY(mutex_) = true;
};

}  // namespace gemmd
