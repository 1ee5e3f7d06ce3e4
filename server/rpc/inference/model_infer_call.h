// One ModelInfer call.
#pragma once

#include <optional>
#include <string>

#include "inference/inference.pb.h"
#include "server/rpc/calls/unary_product_call.h"
#include "server/rpc/context/method.h"
#include "server/rpc/inference/infer_request.h"
#include "server/rpc/inference/model_counters.h"

namespace gemmd {

class ModelInferCall final : public UnaryProductCall {
 public:
  // The reactor lives until the call has ended and the engine is done with it.
  static ModelInferCall* Begin(ServiceContext& service, ModelCounters& counters,
                               SharedMemory& memory, grpc::CallbackServerContext* call,
                               const grpc::ByteBuffer* request, grpc::ByteBuffer* response);

  ModelInferCall(ServiceContext& service, ModelCounters& counters, SharedMemory& memory,
                 grpc::CallbackServerContext* call, grpc::ByteBuffer& request,
                 grpc::ByteBuffer& response)
      : UnaryProductCall(service, call, MethodOf<inference::ModelInferRequest>()),
        counters_(counters),
        memory_(memory),
        received_(request),
        sent_(response) {}

  // Called by the engine.
  void OnResult(ResultPiece piece) override;
  void OnDone(absl::StatusOr<JobResult> result) override;

 private:
  using UnaryCall::OnDone;  // gRPC's, beside it

  absl::StatusOr<ProductRequest> TakeProduct() override;
  std::string& result_data() override { return data_; }
  void OnAdmitted() override;
  void SendOperands(const std::shared_ptr<Job>& job, ProductRequest& product) override;
  absl::Status CheckResult(const Shape& result) override;
  absl::string_view result_field() const override { return kOutputsField; }
  void OnProduct(const absl::StatusOr<JobResult>& result) override;

  ModelCounters& counters_;
  SharedMemory& memory_;
  // gRPC's, for this call alone. The first is empty once it is parsed.
  grpc::ByteBuffer& received_;
  grpc::ByteBuffer& sent_;  // written before outcome_
  inference::ModelInferRequest request_;
  inference::ModelInferResponse response_;
  std::string& data_ = *response_.add_raw_output_contents();
  // Written before the job begins.
  std::optional<Model> model_;
  InferProduct product_;
};

}  // namespace gemmd
