#include "server/rpc/inference/model_infer_call.h"

#include <memory>
#include <utility>

#include "server/base/clock.h"
#include "server/rpc/codec/codec.h"
#include "server/rpc/context/status.h"

namespace gemmd {

ModelInferCall* ModelInferCall::Begin(ServiceContext& service, ModelCounters& counters,
                                      SharedMemory& memory, grpc::CallbackServerContext* call,
                                      const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  // As of MultiplyUnaryCall: the message is for this call alone.
  auto& own = const_cast<grpc::ByteBuffer&>(*request);
  const auto product =
      std::make_shared<ModelInferCall>(service, counters, memory, call, own, *response);
  product->UnaryProductCall::Begin(request->Length());
  return product.get();
}

absl::StatusOr<ProductRequest> ModelInferCall::TakeProduct() {
  const absl::Status decoded = DecodeInfer(received_, request_);
  received_.Clear();
  if (!decoded.ok()) return decoded;
  absl::StatusOr<Model> model =
      FindModel(request_.model_name(), request_.model_version(), caller());
  if (!model.ok()) return model.status();
  model_ = *std::move(model);
  absl::StatusOr<InferProduct> product = ParseInfer(
      request_, *model_, memory_, {caller(), context_->peer(), began_, CallDeadline(*context_)});
  if (!product.ok()) return product.status();
  product_ = *std::move(product);
  Charge(product_.RegionBytes());
  product_.version = VersionNow(service_, *model_);
  return std::move(product_.product);
}

void ModelInferCall::OnAdmitted() {
  // If the matrix was replaced meanwhile, nobody knows which one the product has.
  if (product_.version != VersionNow(service_, *model_)) product_.version.clear();
}

void ModelInferCall::SendOperands(const std::shared_ptr<Job>& job, ProductRequest& product) {
  UnaryProductCall::SendOperands(job, product);
  SendRegions(memory_, job, product_);
}

absl::Status ModelInferCall::CheckResult(const Shape& result) {
  if (product_.result == nullptr) return UnaryProductCall::CheckResult(result);
  return CheckRegionBytes(result.dense_bytes(), *product_.result);
}

void ModelInferCall::OnResult(ResultPiece piece) {
  if (product_.result == nullptr) return UnaryProductCall::OnResult(std::move(piece));
  product_.result->Write(std::move(piece));
}

void ModelInferCall::OnDone(absl::StatusOr<JobResult> result) {
  if (product_.result == nullptr) return UnaryProductCall::OnDone(std::move(result));
  product_.result->End(
      [self = Self<ModelInferCall>(), result = std::move(result)](absl::Status written) mutable {
        if (result.ok() && !written.ok()) result = std::move(written);
        self->UnaryProductCall::OnDone(std::move(result));
      });
}

void ModelInferCall::OnProduct(const absl::StatusOr<JobResult>& result) {
  if (result.ok()) {
    response_.set_id(request_.id());
    FillAnswer(request_, *model_, product_, result->report, response_);
    sent_ = Serialize(response_);
    counters_.OnSuccess(caller().name, *model_, result->report);
  } else if (model_.has_value()) {
    counters_.OnFailure(caller().name, *model_, SteadyNow() - began_);
  }
}

}  // namespace gemmd
