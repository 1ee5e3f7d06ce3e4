#include "server/rpc/inference/parameters.h"

#include <cstdint>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gemm/dtype.h"
#include "gemm/quote.h"
#include "server/rpc/codec/replies.h"
#include "server/rpc/codec/vocabulary.h"
#include "server/rpc/context/status.h"
#include "server/rpc/inference/tensors.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using inference::InferParameter;

struct NamedActivation {
  absl::string_view name;
  v1::Activation activation;
};
constexpr NamedActivation kNamedActivations[] = {
    {"none", v1::ACTIVATION_NONE},
    {"relu", v1::ACTIVATION_RELU},
    {"gelu", v1::ACTIVATION_GELU},
    {"leaky_relu", v1::ACTIVATION_LEAKY_RELU},
};

// Sets the fields of a product from parameters, one after the other.
class ParameterSetter {
 public:
  ParameterSetter(ModelKind kind, v1::Product& product) : kind_(kind), product_(product) {}

  absl::Status Set(const std::string& name, const InferParameter& value) {
    field_ = absl::StrCat("parameters.", gemm::Printable(name, kMaxNameBytes));
    if (name == "alpha") return SetNumber(value, &v1::Product::set_alpha);
    if (name == "leaky_slope") return SetNumber(value, &v1::Product::set_leaky_slope);
    if (name == "activation") return SetActivation(value);
    if (name == "compute") return SetCompute(value);
    if (name == "kernel") return SetKernel(value);
    if (name == "output_type") return SetOutputType(value);
    if (name == "timeout") return SetTimeout(value);
    if (kind_ == ModelKind::kLinear) {
      if (name == "transpose_w") return SetFlag(value, &v1::Product::set_transpose_b);
      if (name == "x_type") return absl::OkStatus();
    } else {
      if (name == "transpose_a") return SetFlag(value, &v1::Product::set_transpose_a);
      if (name == "transpose_b") return SetFlag(value, &v1::Product::set_transpose_b);
      if (name == "a_type" || name == "b_type") return absl::OkStatus();
    }
    if (IsTritons(name)) return absl::OkStatus();
    return FieldError(
        field_,
        absl::StrCat("the model has no such parameter; it has alpha, activation, leaky_slope, "
                     "compute, kernel, output_type, timeout, ",
                     kind_ == ModelKind::kLinear ? "transpose_w, x_type"
                                                 : "transpose_a, transpose_b, a_type, b_type"));
  }

 private:
  // Clients send these by themselves. A product has no priority and is in no sequence.
  static bool IsTritons(absl::string_view name) {
    return absl::StartsWith(name, "triton_") || absl::StartsWith(name, "sequence_") ||
           name == "priority";
  }

  absl::Status Wants(absl::string_view what) const {
    return FieldError(field_, absl::StrCat("it must be ", what));
  }

  absl::Status SetNumber(const InferParameter& value, void (v1::Product::*set)(double)) {
    switch (value.parameter_choice_case()) {
      case InferParameter::kDoubleParam:
        (product_.*set)(value.double_param());
        return absl::OkStatus();
      case InferParameter::kInt64Param:
        (product_.*set)(static_cast<double>(value.int64_param()));
        return absl::OkStatus();
      case InferParameter::kUint64Param:
        (product_.*set)(static_cast<double>(value.uint64_param()));
        return absl::OkStatus();
      default:
        return Wants("a number");
    }
  }

  absl::Status SetFlag(const InferParameter& value, void (v1::Product::*set)(bool)) {
    if (!value.has_bool_param()) return Wants("a bool");
    (product_.*set)(value.bool_param());
    return absl::OkStatus();
  }

  absl::Status SetActivation(const InferParameter& value) {
    for (const NamedActivation& row : kNamedActivations) {
      if (value.string_param() != row.name) continue;
      product_.set_activation(row.activation);
      return absl::OkStatus();
    }
    return Wants("one of none, relu, gelu, leaky_relu");
  }

  absl::Status SetCompute(const InferParameter& value) {
    const std::optional<gemm::Compute> compute = gemm::ParseCompute(value.string_param());
    if (!compute.has_value()) return Wants("one of f64, f32, tf32, f16, f32x3, s32");
    product_.set_compute(ToProto(*compute));
    return absl::OkStatus();
  }

  absl::Status SetKernel(const InferParameter& value) {
    if (value.string_param().empty()) return Wants("the name of a kernel");
    product_.mutable_kernel()->set_name(value.string_param());
    return absl::OkStatus();
  }

  absl::Status SetOutputType(const InferParameter& value) {
    const absl::StatusOr<gemm::DType> type = ParseTypeName(value.string_param(), field_);
    if (!type.ok()) return type.status();
    product_.set_output_dtype(ToProto(*type));
    return absl::OkStatus();
  }

  absl::Status SetTimeout(const InferParameter& value) {
    const int64_t microseconds = value.int64_param();
    if (microseconds < 0 || !value.has_int64_param()) {
      return Wants("an integer of microseconds, at least 0 (0: none)");
    }
    if (microseconds > 0) Fill(absl::Microseconds(microseconds), *product_.mutable_timeout());
    return absl::OkStatus();
  }

  const ModelKind kind_;
  v1::Product& product_;
  std::string field_;
};

}  // namespace

absl::StatusOr<std::string> TextOf(const InferParameters& parameters, const std::string& name) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return std::string();
  if (found->second.has_string_param()) return found->second.string_param();
  return FieldError(absl::StrCat("parameters.", name), "it must be a string");
}

absl::StatusOr<uint64_t> CountOf(const InferParameters& parameters, const std::string& name) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return 0;
  const InferParameter& value = found->second;
  if (value.has_uint64_param()) return value.uint64_param();
  if (value.has_int64_param() && value.int64_param() >= 0) {
    return static_cast<uint64_t>(value.int64_param());
  }
  return FieldError(absl::StrCat("parameters.", name), "must be a whole number, not negative");
}

absl::Status SetParameters(const InferParameters& parameters, ModelKind kind,
                           v1::Product& product) {
  ParameterSetter setter(kind, product);
  for (const auto& [name, value] : parameters) {
    if (absl::Status status = setter.Set(name, value); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace gemmd
