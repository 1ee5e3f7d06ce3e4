// Calls that run one product, whose request and answer each are one message, and MultiplyUnary of
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemm/v1/gemm.pb.h"
#include "grpcpp/server_context.h"
#include "server/engine/job/job.h"
#include "server/rpc/codec/requests.h"
#include "server/rpc/context/method.h"
#include "server/rpc/context/service_context.h"
#include "server/rpc/life/reactors.h"

namespace gemmd {

// INVALID_ARGUMENT where a result of so many bytes, and what is around it, do not fit one message.
// `field`: of the request, which asks for it.
absl::Status CheckResultBytes(absl::string_view field, uint64_t bytes, const RpcLimits& limits);

class UnaryProductCall : public UnaryCall, public JobListener {
 public:
  // Called by the engine.
  void OnResult(ResultPiece piece) override;
  using UnaryCall::OnDone;  // gRPC's, beside it
  void OnDone(absl::StatusOr<JobResult> result) override;

 protected:
  using UnaryCall::UnaryCall;

  // The product of the request. Called once, when the caller's rate lets the call begin; may move
  // the elements out of the request.
  virtual absl::StatusOr<ProductRequest> TakeProduct() = 0;
  // The elements of the result: the field of the answer that has them.
  virtual std::string& result_data() = 0;
  // The field of the request that asks for the result.
  virtual absl::string_view result_field() const = 0;
  // The engine has the product's operands, and will run it.
  virtual void OnAdmitted() {}
  // Sends the elements of the operands that the request has.
  virtual void SendOperands(const std::shared_ptr<Job>& job, ProductRequest& product);
  // Whether a result of this shape can be answered.
  virtual absl::Status CheckResult(const Shape& result);
  // The job has ended, or was refused, and the call is about to end. Fills in the rest of the
  // answer.
  virtual void OnProduct(const absl::StatusOr<JobResult>& result) = 0;

  // Begins the call, whose request has so many bytes.
  void Begin(size_t request_bytes);

 private:
  void OnCancelled() override;

  absl::Status Start(size_t request_bytes);

  std::shared_ptr<Job> job_ ABSL_GUARDED_BY(mutex_);  // from its start to its end
};

// One MultiplyUnary call.
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
