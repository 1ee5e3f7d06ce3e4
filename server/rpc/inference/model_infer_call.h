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
                               grpc::CallbackServerContext* call,
                               const inference::ModelInferRequest* request,
                               inference::ModelInferResponse* response);

  ModelInferCall(ServiceContext& service, ModelCounters& counters,
                 grpc::CallbackServerContext* call, inference::ModelInferRequest& request,
                 inference::ModelInferResponse& response)
      : UnaryProductCall(service, call, MethodOf<inference::ModelInferRequest>()),
        counters_(counters),
        request_(request),
        response_(response),
        data_(*response.add_raw_output_contents()) {}

 private:
  absl::StatusOr<ProductRequest> TakeProduct() override;
  std::string& result_data() override { return data_; }
  absl::string_view result_field() const override { return kOutputsField; }
  void OnProduct(const absl::StatusOr<JobResult>& result) override;

  ModelCounters& counters_;
  inference::ModelInferRequest& request_;
  inference::ModelInferResponse& response_;  // written before outcome_
  std::string& data_;                        // of response_
  // Written before the job begins.
  std::optional<Model> model_;
  InferProduct product_;
};

}  // namespace gemmd
