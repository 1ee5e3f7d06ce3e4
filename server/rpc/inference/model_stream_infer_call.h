// One ModelStreamInfer call: products on one stream, answered in the order of their requests.
//
// A few of them are under way at once. The stream is not read while there are as many, or while
// their answers have more than a part of the bytes of a message, until the client reads them. So
// answers never have more than a message and that part.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "inference/inference.pb.h"
#include "server/engine/job/job.h"
#include "server/rpc/context/service_context.h"
#include "server/rpc/inference/infer_request.h"
#include "server/rpc/inference/model_counters.h"
#include "server/rpc/life/reactors.h"

namespace gemmd {

class ModelStreamInferCall final : public BidiStreamingCall {
 public:
  // The reactor lives until the call and all of its products have ended.
  static ModelStreamInferCall* Begin(ServiceContext& service, ModelCounters& counters,
                                     SharedMemory& memory, grpc::CallbackServerContext* call);

  ModelStreamInferCall(ServiceContext& service, ModelCounters& counters, SharedMemory& memory,
                       grpc::CallbackServerContext* call)
      : BidiStreamingCall(service, call, "ModelStreamInfer"),
        counters_(counters),
        memory_(memory) {}

  void BeginDrain() override;

 private:
  // Products under way, and answers that the client has not read.
  static constexpr size_t kMostUnderWay = 4;
  // The part of --max-message-bytes that their answers may have for another request to be read.
  static constexpr size_t kPartOfMessage = 4;

  // One request, and the engine's listener for its product.
  class Answer;

  std::optional<absl::Status> Outcome() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WantsRead() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnMessage(grpc::ByteBuffer& message) override;
  void OnInputEnd() override { EndInput(absl::OkStatus()); }
  void OnWritten() override;
  void OnCancelled() override;
  void GrowOld() override;

  // Ends the stream when the products that it has have ended.
  void TakeNoMore(absl::Status why);
  // Handles no more messages; `why` is the call's status.
  void EndInput(absl::Status why);
  // Begins the product of a request.
  absl::Status Open(const std::shared_ptr<Answer>& answer);
  // The bytes of an answer that is in answers_.
  void SetBytes(Answer& answer, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends the answers that are complete, up to the first that is not.
  void SendAnswers();

  ModelCounters& counters_;
  SharedMemory& memory_;
  std::deque<std::shared_ptr<Answer>> answers_ ABSL_GUARDED_BY(mutex_);  // not yet sent
  std::deque<size_t> unread_ ABSL_GUARDED_BY(mutex_);  // bytes of answers that gRPC is to send
  size_t answer_bytes_ ABSL_GUARDED_BY(mutex_) = 0;    // of both, or of their results
  bool input_open_ ABSL_GUARDED_BY(mutex_) = true;
  absl::Status leaving_ ABSL_GUARDED_BY(mutex_);  // why it takes no more
  absl::Status input_error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
