// Requests of the Open Inference Protocol: whatever they are, each is refused, or is a product
// whose operands have all their elements.
//
// Input: a ModelInferRequest.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

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

// With a region "r" of 4 KiB. Its file has no name any more at the end of the process.
gemmd::SharedMemory& Memory() {
  static constexpr char kKey[] = "/gemmd-inference-fuzz";
  static auto* const memory = [] {
    const int file = shm_open(kKey, O_RDWR | O_CREAT, 0600);
    Require(file >= 0 && ftruncate(file, 4096) == 0);
    close(file);
    std::atexit([] { shm_unlink(kKey); });
    auto* const made = new gemmd::SharedMemory(true);
    Require(made->Register("fuzz", "r", {.key = kKey, .bytes = 4096}).ok());
    return made;
  }();
  return *memory;
}

void RequireWhole(const gemmd::InferProduct& infer) {
  const gemmd::ProductRequest& product = infer.product;
  size_t payloads = 0;
  for (const gemmd::OperandSpec* operand : {&product.spec.a, &product.spec.b}) {
    if (IsPayload(*operand)) ++payloads;
    Require(operand->shape.has_value() || !IsPayload(*operand));
  }
  Require(!product.spec.c.has_value() && !product.spec.bias.has_value());
  Require(product.inline_data.size() + infer.regions.size() == payloads);
  for (const auto& [role, data] : product.inline_data) {
    const gemmd::OperandSpec& operand = role == gemmd::Role::kA ? product.spec.a : product.spec.b;
    Require(data.size() == operand.shape->dense_bytes());
  }
  for (const auto& [role, part] : infer.regions) {
    const gemmd::OperandSpec& operand = role == gemmd::Role::kA ? product.spec.a : product.spec.b;
    Require(part->bytes() == operand.shape->dense_bytes());
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
  const absl::StatusOr<gemmd::InferProduct> product = gemmd::ParseInfer(
      request, *model, Memory(), {caller, "unix:", absl::UnixEpoch(), absl::InfiniteFuture()});
  if (product.ok()) RequireWhole(*product);
  return 0;
}
