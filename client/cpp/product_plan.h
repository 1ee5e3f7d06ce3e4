// How one product goes: what is sent, and by which way.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/matrix.h"
#include "client/cpp/options.h"
#include "client/cpp/product.h"
#include "gemm/v1/gemm.pb.h"

namespace gemmd::client {

// What a plan depends on beside the product.
struct PlanLimits {
  uint64_t chunk_bytes = kMiB;
  uint64_t unary_threshold_bytes = 0;
  uint64_t stripe_threshold_bytes = 0;
  // The largest messages that the server, and this client, take.
  uint64_t server_message_bytes = 0;
  uint64_t client_message_bytes = 0;
  int channels = 1;
  // Of the server, healthy or not: one that is not now may be later.
  int devices = 1;
};

// An operand whose elements this client sends.
struct SentOperand {
  ::gemm::v1::OperandRole role;
  MatrixView view;
  // Uploaded over all channels before the product; otherwise part of it.
  bool striped = false;
};

struct ProductPlan {
  // As it goes over the wire, but for the sources of the operands in `sent`.
  ::gemm::v1::Product product;
  std::vector<SentOperand> sent;  // in the order a, b, c, bias
  Transport transport = Transport::kUnary;
  bool fetch = true;
  // Kept for a moment and fetched over all channels.
  bool striped_result = false;
  // Where known before the server says it.
  std::optional<Shape> result_shape;
  std::optional<MutableMatrixView> into;
  uint64_t payload_bytes = 0;
};

// Checks what can be checked here. INVALID_ARGUMENT names the field, the value
// and the bound.
absl::StatusOr<ProductPlan> PlanProduct(const Product& product, Transport transport,
                                        const PlanLimits& limits);

// The operand of `product` that `role` names.
::gemm::v1::Operand* MutableOperand(::gemm::v1::Product& product, ::gemm::v1::OperandRole role);

::gemm::v1::Generator ToProto(const Generated& generated);
::gemm::v1::Keep ToProto(const Keep& keep);
::gemm::v1::MatrixRef ToProto(const Resident& resident);
google::protobuf::Duration ToProto(absl::Duration duration);

// OK, or INVALID_ARGUMENT that names `field`: no memory, or a bad shape.
absl::Status CheckView(const MatrixView& view, absl::string_view field);

}  // namespace gemmd::client
