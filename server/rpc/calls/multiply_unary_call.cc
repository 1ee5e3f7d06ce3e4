#include "server/rpc/calls/multiply_unary_call.h"

#include <memory>

#include "server/rpc/codec/replies.h"
#include "server/rpc/context/status.h"

namespace gemmd {

namespace v1 = gemm::v1;

MultiplyUnaryCall* MultiplyUnaryCall::Begin(ServiceContext& service,
                                            grpc::CallbackServerContext* call,
                                            const v1::MultiplyUnaryRequest* request,
                                            v1::MultiplyUnaryResponse* response) {
  // The message is gRPC's, for this call alone, and not looked at again: its elements can be
  // moved, not copied. gRPC keeps it as long as the call.
  auto& own = const_cast<v1::MultiplyUnaryRequest&>(*request);
  const auto product = std::make_shared<MultiplyUnaryCall>(service, call, own, *response);
  product->UnaryProductCall::Begin(request->ByteSizeLong());
  return product.get();
}

absl::StatusOr<ProductRequest> MultiplyUnaryCall::TakeProduct() {
  if (!request_.has_product()) return FieldError("product", "not set");
  return ParseProduct(*request_.mutable_product(), caller(), PayloadRule::kRefused, began_,
                      CallDeadline(*context_));
}

void MultiplyUnaryCall::OnProduct(const absl::StatusOr<JobResult>& result) {
  if (!result.ok()) return;
  Fill(result->report, *response_.mutable_report());
  if (result->kept.has_value()) Fill(*result->kept, *response_.mutable_kept());
}

}  // namespace gemmd
