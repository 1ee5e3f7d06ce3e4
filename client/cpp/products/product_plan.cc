#include "client/cpp/products/product_plan.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/calls/to_proto.h"
#include "client/cpp/calls/wire.h"

namespace gemmd::client {
namespace {

namespace v1 = ::gemm::v1;

// Puts one operand into the plan.
absl::Status AddOperand(const Operand& operand, v1::OperandRole role, absl::string_view field,
                        ProductPlan& plan) {
  v1::Operand& proto = *MutableOperand(plan.product, role);
  if (const auto* view = std::get_if<MatrixView>(&operand)) {
    if (absl::Status status = CheckView(*view, field); !status.ok()) return status;
    *proto.mutable_shape() = ToProto(view->shape);
    plan.sent.push_back({.role = role, .view = *view});
    plan.payload_bytes += view->shape.bytes();
  } else if (const auto* resident = std::get_if<Resident>(&operand)) {
    if (resident->id.empty() == resident->name.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(field, ".id is '", resident->id, "' and ",
                                                     field, ".name is '", resident->name,
                                                     "'; exactly one of them must be set"));
    }
    if (resident->shape) *proto.mutable_shape() = ToProto(*resident->shape);
    *proto.mutable_matrix() = ToProto(*resident);
  } else if (const auto* generated = std::get_if<Generated>(&operand)) {
    *proto.mutable_shape() = ToProto(generated->shape);
    *proto.mutable_generator() = ToProto(*generated);
  }
  return absl::OkStatus();
}

absl::Status AddOperands(const Product& product, ProductPlan& plan) {
  const struct {
    const Operand* operand;
    v1::OperandRole role;
    absl::string_view field;
  } rows[] = {
      {&product.a, v1::OPERAND_ROLE_A, "a"},
      {&product.b, v1::OPERAND_ROLE_B, "b"},
      {product.c ? &*product.c : nullptr, v1::OPERAND_ROLE_C, "c"},
      {product.bias ? &*product.bias : nullptr, v1::OPERAND_ROLE_BIAS, "bias"},
      {product.scales_a ? &*product.scales_a : nullptr, v1::OPERAND_ROLE_SCALES_A, "scales_a"},
      {product.scales_b ? &*product.scales_b : nullptr, v1::OPERAND_ROLE_SCALES_B, "scales_b"}};
  for (const auto& row : rows) {
    if (row.operand == nullptr) continue;
    absl::Status status = AddOperand(*row.operand, row.role, row.field, plan);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status AddKernel(const KernelChoice& kernel, v1::Product& proto) {
  if (!kernel.name.empty() && !kernel.family.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("kernel.name is '", kernel.name,
                                                   "' and kernel.family is '", kernel.family,
                                                   "'; at most one of them may be set"));
  }
  if (!kernel.name.empty()) proto.mutable_kernel()->set_name(kernel.name);
  if (!kernel.family.empty()) proto.mutable_kernel()->set_family(kernel.family);
  for (const auto& [name, value] : kernel.params) {
    (*proto.mutable_kernel()->mutable_params())[name] = value;
  }
  return absl::OkStatus();
}

// Everything but operands and result.
absl::Status AddScalars(const Product& product, v1::Product& proto) {
  proto.set_transpose_a(product.transpose_a);
  proto.set_transpose_b(product.transpose_b);
  proto.set_alpha(product.alpha);
  if (product.scale_a != 1) proto.set_scale_a(product.scale_a);
  if (product.scale_b != 1) proto.set_scale_b(product.scale_b);
  proto.set_beta(product.beta);
  proto.set_activation(product.activation);
  if (product.activation == kLeakyRelu) proto.set_leaky_slope(product.leaky_slope);
  if (product.output_dtype) proto.set_output_dtype(*product.output_dtype);
  proto.set_output_layout(product.output_layout);
  proto.set_compute(product.compute);
  proto.set_verify(product.verify);
  if (product.server_timeout != absl::InfiniteDuration()) {
    *proto.mutable_timeout() = ToProto(product.server_timeout);
  }
  return AddKernel(product.kernel, proto);
}

absl::Status AddBatch(const Product& product, const PlanLimits& limits, v1::Product& proto) {
  if (product.batch_count != 1) {
    // A server that does not know batches would take it for a single product.
    if (limits.max_batch_count == 0) {
      return absl::UnimplementedError(absl::StrCat("batch_count is ", product.batch_count,
                                                   ", but the server takes no batches"));
    }
    if (product.batch_count < 1 || product.batch_count > limits.max_batch_count) {
      return absl::InvalidArgumentError(absl::StrCat("batch_count is ", product.batch_count,
                                                     "; it must be from 1 to ",
                                                     limits.max_batch_count));
    }
    proto.set_batch_count(product.batch_count);
  }
  for (const auto& [shared, role] : {std::pair{product.shared.a, v1::OPERAND_ROLE_A},
                                     {product.shared.b, v1::OPERAND_ROLE_B},
                                     {product.shared.c, v1::OPERAND_ROLE_C},
                                     {product.shared.bias, v1::OPERAND_ROLE_BIAS}}) {
    if (shared) proto.add_shared_operands(role);
  }
  return absl::OkStatus();
}

absl::Status AddGroup(const Product& product, const PlanLimits& limits, v1::Product& proto) {
  const std::vector<ProductSize>& group = product.group;
  if (group.empty()) return absl::OkStatus();
  // A server that does not know groups would take it for a single product.
  if (limits.max_group_count == 0) {
    return absl::UnimplementedError(
        absl::StrCat("group has ", group.size(), " products, but the server takes no groups"));
  }
  if (group.size() > static_cast<size_t>(limits.max_group_count)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "group has ", group.size(), " products; it may have up to ", limits.max_group_count));
  }
  if (product.batch_count != 1) {
    return absl::InvalidArgumentError(absl::StrCat("batch_count is ", product.batch_count,
                                                   " and group has ", group.size(),
                                                   " products; a product is a batch or a group"));
  }
  for (const ProductSize& size : group) {
    v1::ProductSize& one = *proto.add_group();
    one.set_m(size.m);
    one.set_n(size.n);
    one.set_k(size.k);
  }
  return absl::OkStatus();
}

// A server that does not know block scales would leave them out.
absl::Status CheckScales(const Product& product, const PlanLimits& limits) {
  if ((!product.scales_a && !product.scales_b) || limits.scale_block > 0) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(product.scales_a ? "scales_a" : "scales_b",
                                               " is set, but the server takes no block scales"));
}

// The fields of a product beside its elements.
uint64_t FieldBytes(const ProductPlan& plan) {
  // Three numbers of 64 bits, and what stands before each and all of them.
  constexpr uint64_t kSizeBytes = 3 * 11 + 2;
  return kMessageOverheadBytes + kSizeBytes * static_cast<uint64_t>(plan.product.group_size());
}

bool Overlap(const MatrixView& sent, const MutableMatrixView& into) {
  // std::less orders pointers into different objects, too.
  const std::less<const std::byte*> before;
  return before(sent.data, into.data + into.shape.bytes()) &&
         before(into.data, sent.data + sent.shape.bytes());
}

absl::Status AddResult(const Product& product, ProductPlan& plan) {
  const ResultTo& result = product.result;
  if (!result.fetch && !result.keep) {
    return absl::InvalidArgumentError(
        "result.fetch is false and result.keep is not set; at least one must be");
  }
  plan.fetch = result.fetch;
  plan.product.mutable_result()->set_stream(result.fetch);
  if (result.keep) *plan.product.mutable_result()->mutable_keep() = ToProto(*result.keep);
  absl::StatusOr<std::optional<Shape>> shape = ResultShape(product);
  if (!shape.ok()) return shape.status();
  plan.result_shape = *shape;
  if (!result.fetch || !result.into) return absl::OkStatus();
  if (absl::Status status = CheckShape(result.into->shape, "result.into.shape"); !status.ok()) {
    return status;
  }
  if (result.into->data == nullptr) {
    return absl::InvalidArgumentError("result.into.data is null; it must point to memory");
  }
  if (plan.result_shape && !(*plan.result_shape == result.into->shape)) {
    return absl::InvalidArgumentError(absl::StrCat("result.into.shape is ",
                                                   ToString(result.into->shape), "; the result is ",
                                                   ToString(*plan.result_shape)));
  }
  plan.into = result.into;
  plan.into_overlaps =
      std::any_of(plan.sent.begin(), plan.sent.end(),
                  [&](const SentOperand& sent) { return Overlap(sent.view, *plan.into); });
  plan.result_shape = result.into->shape;
  return absl::OkStatus();
}

// Bytes to receive; nothing where that is not known yet.
std::optional<uint64_t> ResultBytes(const ProductPlan& plan) {
  if (!plan.fetch) return 0;
  if (!plan.result_shape) return std::nullopt;
  return plan.result_shape->bytes();
}

// Why the product cannot go as one message each way, or OK.
absl::Status CheckUnary(const ProductPlan& plan, const PlanLimits& limits) {
  const uint64_t request = plan.payload_bytes + FieldBytes(plan);
  if (request > limits.server_message_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("transport is unary, and the operands to send have ", plan.payload_bytes,
                     " bytes; a message may have ", limits.server_message_bytes, " with ",
                     FieldBytes(plan), " for its other fields"));
  }
  const uint64_t result = ResultBytes(plan).value_or(0);
  if (result + kMessageOverheadBytes > limits.client_message_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "transport is unary, and the result has ", result, " bytes; a message may have ",
        limits.client_message_bytes, " with ", kMessageOverheadBytes, " for its other fields"));
  }
  return absl::OkStatus();
}

// Marks the matrices of at least `threshold` bytes. Returns whether there are any.
bool MarkStripes(ProductPlan& plan, uint64_t threshold, const PlanLimits& limits) {
  if (limits.channels < 2 || !limits.may_keep) return false;
  // Uploads, and the job that takes them, must be on one device. The library
  // can choose that device unless the product already names a resident matrix
  // that lies on one it does not know.
  bool names_resident = false;
  for (const v1::Operand* operand :
       {&plan.product.a(), &plan.product.b(), &plan.product.c(), &plan.product.bias(),
        &plan.product.scales_a(), &plan.product.scales_b()}) {
    names_resident = names_resident || operand->has_matrix();
  }
  bool any = false;
  if (limits.devices < 2 || !names_resident) {
    for (SentOperand& sent : plan.sent) {
      sent.striped = sent.view.shape.bytes() >= threshold;
      any = any || sent.striped;
    }
  }
  // A result that the user keeps stays under the user's name and time to live.
  plan.striped_result =
      plan.fetch && !plan.product.result().has_keep() && ResultBytes(plan).value_or(0) >= threshold;
  return any || plan.striped_result;
}

// Whether every block of rows would read the same matrix, and may: it is put once, or lies on the
// server under a key that means one matrix alone.
bool MayServeAllBlocks(const Operand& operand, bool generated_too) {
  if (const auto* resident = std::get_if<Resident>(&operand)) {
    return !resident->release && (!resident->id.empty() || resident->version.has_value());
  }
  return generated_too || std::holds_alternative<MatrixView>(operand);
}

bool IsSentByRows(const Operand& operand) {
  const auto* view = std::get_if<MatrixView>(&operand);
  return view != nullptr && view->shape.layout != kColumnMajor;
}

// Whether the product may go in blocks of rows, whatever its size.
bool TakesRowBlocks(const Product& product, const PlanLimits& limits, const ProductPlan& plan) {
  const bool single = product.batch_count == 1 && product.group.empty() &&
                      plan.product.shared_operands().empty() && !product.scales_a &&
                      !product.scales_b;
  const bool unchecked = product.verify == kVerifyByPolicy || product.verify == kVerifyOff;
  const bool rows_come_back = plan.fetch && !product.result.keep && plan.result_shape &&
                              plan.result_shape->layout != kColumnMajor;
  if (!single || !unchecked || !rows_come_back || !plan.product.b().has_shape()) return false;
  if (product.transpose_a || !IsSentByRows(product.a)) return false;
  if (product.c && !IsSentByRows(*product.c)) return false;
  if (!MayServeAllBlocks(product.b, /*generated_too=*/false)) return false;
  // Its elements are the same whichever job generates them.
  if (product.bias && !MayServeAllBlocks(*product.bias, /*generated_too=*/true)) return false;
  const bool puts = std::any_of(plan.sent.begin(), plan.sent.end(),
                                [](const SentOperand& sent) { return !GoesByRows(sent.role); });
  // What is put must lie where a resident operand does: see MarkStripes.
  const bool names_resident = plan.product.b().has_matrix() || plan.product.bias().has_matrix();
  return !puts || (limits.may_keep && (limits.devices < 2 || !names_resident));
}

// Plans blocks of rows where product and limits allow, and A and D have `threshold` bytes.
void PlanBlocks(const Product& product, uint64_t threshold, const PlanLimits& limits,
                ProductPlan& plan) {
  if (limits.row_blocks_per_channel < 1 || !TakesRowBlocks(product, limits, plan)) return;
  const uint64_t a_bytes = std::get<MatrixView>(product.a).shape.bytes();
  if (std::min(a_bytes, plan.result_shape->bytes()) < threshold) return;
  std::vector<RowBlock> blocks = PlanRowBlocks(
      plan.result_shape->rows, int64_t{limits.channels} * limits.row_blocks_per_channel);
  if (blocks.size() < 2) return;
  plan.row_blocks = std::move(blocks);
  plan.transport = Transport::kRowBlocks;
  for (SentOperand& sent : plan.sent) {
    if (!GoesByRows(sent.role)) sent.striped = true;
  }
}

absl::Status ChooseTransport(const Product& product, Transport wanted, const PlanLimits& limits,
                             ProductPlan& plan) {
  const std::optional<uint64_t> result = ResultBytes(plan);
  const bool small = result && plan.payload_bytes + *result <= limits.unary_threshold_bytes &&
                     CheckUnary(plan, limits).ok();
  switch (wanted) {
    case Transport::kUnary:
      plan.transport = Transport::kUnary;
      return CheckUnary(plan, limits);
    case Transport::kStream:
      plan.transport = Transport::kStream;
      return absl::OkStatus();
    case Transport::kStriped:
    case Transport::kRowBlocks:
      plan.transport = MarkStripes(plan, limits.chunk_bytes + 1, limits) ? Transport::kStriped
                                                                         : Transport::kStream;
      if (wanted == Transport::kRowBlocks) PlanBlocks(product, 0, limits, plan);
      return absl::OkStatus();
    case Transport::kAuto:
      break;
  }
  if (small) {
    plan.transport = Transport::kUnary;
  } else {
    const uint64_t threshold = std::max(limits.stripe_threshold_bytes, limits.chunk_bytes + 1);
    plan.transport =
        MarkStripes(plan, threshold, limits) ? Transport::kStriped : Transport::kStream;
    if (limits.channels > 1) PlanBlocks(product, threshold, limits, plan);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ProductPlan> PlanProduct(const Product& product, Transport transport,
                                        const PlanLimits& limits) {
  ProductPlan plan;
  for (absl::Status status : {AddOperands(product, plan), AddScalars(product, plan.product),
                              AddBatch(product, limits, plan.product), CheckScales(product, limits),
                              AddGroup(product, limits, plan.product), AddResult(product, plan)}) {
    if (!status.ok()) return status;
  }
  absl::Status status = ChooseTransport(product, transport, limits, plan);
  if (!status.ok()) return status;
  return plan;
}

bool GoesByRows(v1::OperandRole role) {
  return role == v1::OPERAND_ROLE_A || role == v1::OPERAND_ROLE_C;
}

v1::Operand* MutableOperand(v1::Product& product, v1::OperandRole role) {
  switch (role) {
    case v1::OPERAND_ROLE_B:
      return product.mutable_b();
    case v1::OPERAND_ROLE_C:
      return product.mutable_c();
    case v1::OPERAND_ROLE_BIAS:
      return product.mutable_bias();
    case v1::OPERAND_ROLE_SCALES_A:
      return product.mutable_scales_a();
    case v1::OPERAND_ROLE_SCALES_B:
      return product.mutable_scales_b();
    default:
      return product.mutable_a();
  }
}

absl::Status CheckView(const MatrixView& view, absl::string_view field) {
  absl::Status status = CheckShape(view.shape, absl::StrCat(field, ".shape"));
  if (status.ok() && view.data == nullptr) {
    status =
        absl::InvalidArgumentError(absl::StrCat(field, ".data is null; it must point to memory"));
  }
  return status;
}

std::vector<RowBlock> PlanRowBlocks(int64_t rows, int64_t blocks) {
  const int64_t tiles = (rows - 1) / kRowsOfATile + 1;
  const int64_t count = std::min(blocks, tiles);
  std::vector<RowBlock> plan;
  plan.reserve(static_cast<size_t>(count));
  int64_t first = 0;
  for (int64_t i = 0; i < count; ++i) {
    // The larger ones go first: the last result is then the sooner there.
    const int64_t whole = tiles / count + (i < tiles % count ? 1 : 0);
    const int64_t block_rows = std::min(whole * kRowsOfATile, rows - first);
    plan.push_back({.first = first, .rows = block_rows});
    first += block_rows;
  }
  return plan;
}

}  // namespace gemmd::client
