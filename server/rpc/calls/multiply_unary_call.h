// One MultiplyUnary call.
#pragma once

#include <string>

#include "gemm/v1/gemm.pb.h"
#include "server/rpc/calls/unary_product_call.h"
#include "server/rpc/context/method.h"

namespace gemmd {

class MultiplyUnaryCall final : public UnaryProductCall {
 public:
  // The reactor lives until the call has ended and the engine is done with it.
  static MultiplyUnaryCall* Begin(ServiceContext& service, grpc::CallbackServerContext* call,
                                  const gemm::v1::MultiplyUnaryRequest* request,
                                  gemm::v1::MultiplyUnaryResponse* response);

  MultiplyUnaryCall(ServiceContext& service, grpc::CallbackServerContext* call,
                    gemm::v1::MultiplyUnaryRequest& request,
                    gemm::v1::MultiplyUnaryResponse& response)
      : UnaryProductCall(service, call, MethodOf<gemm::v1::MultiplyUnaryRequest>()),
        request_(request),
        response_(response) {}

 private:
  absl::StatusOr<ProductRequest> TakeProduct() override;
  std::string& result_data() override { return *response_.mutable_data(); }
  absl::string_view result_field() const override { return "product.result.stream"; }
  void OnProduct(const absl::StatusOr<JobResult>& result) override;

  gemm::v1::MultiplyUnaryRequest& request_;
  gemm::v1::MultiplyUnaryResponse& response_;  // written before outcome_
};

}  // namespace gemmd
