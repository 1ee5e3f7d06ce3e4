// Requests of the Open Inference Protocol: whatever they are, each is refused, or is a product
// whose operands have all their elements.
//
// Input: a ModelInferRequest.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <variant>

#include "absl/time/time.h"
#include "inference/inference.pb.h"
#include "server/rpc/inference/infer_request.h"
#include "server/rpc/inference/models.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

bool IsPayload(const gemmd::OperandSpec& operand) {
  return std::holds_alternative<gemmd::FromPayload>(operand.source);
}

void RequireWhole(const gemmd::ProductRequest& product) {
  size_t payloads = 0;
  for (const gemmd::OperandSpec* operand : {&product.spec.a, &product.spec.b}) {
    if (IsPayload(*operand)) ++payloads;
    Require(operand->shape.has_value() || !IsPayload(*operand));
  }
  Require(!product.spec.c.has_value() && !product.spec.bias.has_value());
  Require(product.inline_data.size() == payloads);
  for (const auto& [role, data] : product.inline_data) {
    const gemmd::OperandSpec& operand = role == gemmd::Role::kA ? product.spec.a : product.spec.b;
    Require(data.size() == operand.shape->dense_bytes());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  inference::ModelInferRequest request;
  if (!request.ParseFromArray(data, static_cast<int>(size))) return 0;
  const gemmd::Caller caller = {.name = "fuzz", .roles = {}};
  const absl::StatusOr<gemmd::Model> model =
      gemmd::FindModel(request.model_name(), request.model_version(), caller);
  if (!model.ok()) return 0;
  const absl::StatusOr<gemmd::InferProduct> product =
      gemmd::ParseInfer(request, *model, caller, absl::UnixEpoch(), absl::InfiniteFuture());
  if (product.ok()) RequireWhole(product->product);
  return 0;
}
