#include "server/rpc/codec/requests.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "gemm/quote.h"
#include "gemm/reference.h"
#include "server/rpc/codec/vocabulary.h"
#include "server/rpc/context/status.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;

constexpr size_t kMaxKernelParams = 16;
constexpr absl::Duration kShortestTtl = absl::Milliseconds(1);
constexpr absl::Duration kShortestTimeout = absl::Microseconds(1);

std::string Sub(absl::string_view field, absl::string_view name) {
  return absl::StrCat(field, ".", name);
}

// 1 to 128 characters of [A-Za-z0-9._/-].
absl::Status CheckName(absl::string_view name, absl::string_view field) {
  if (absl::Status status = CheckNameBytes(name, field); !status.ok()) return status;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (!absl::ascii_isalnum(c) && c != '.' && c != '_' && c != '/' && c != '-') {
      return FieldError(field, absl::StrCat(gemm::Quoted(name), " has a character other than ",
                                            "A-Z a-z 0-9 . _ / - at byte ", i));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOptionalName(absl::string_view name, absl::string_view field) {
  return name.empty() ? absl::OkStatus() : CheckNameBytes(name, field);
}

absl::StatusOr<Shape> ParseShape(const v1::MatrixShape& shape, absl::string_view field) {
  const absl::StatusOr<gemm::DType> type = ParseDataType(shape.dtype(), Sub(field, "dtype"));
  if (!type.ok()) return type.status();
  const absl::StatusOr<bool> column_major = ParseColumnMajor(shape.layout(), Sub(field, "layout"));
  if (!column_major.ok()) return column_major.status();
  const Shape parsed = {shape.rows(), shape.cols(), *type, *column_major};
  if (absl::Status status = CheckShape(parsed, field); !status.ok()) return status;
  return parsed;
}

absl::StatusOr<KeepSpec> ParseKeep(const v1::Keep& keep, const Caller& caller,
                                   absl::string_view field) {
  KeepSpec spec{.name = keep.name(), .owner = caller.name, .shared = keep.shared()};
  if (!spec.name.empty()) {
    if (absl::Status status = CheckName(spec.name, Sub(field, "name")); !status.ok()) return status;
  }
  if (keep.has_ttl()) {
    const absl::StatusOr<absl::Duration> ttl =
        ParseDuration(keep.ttl(), kShortestTtl, Sub(field, "ttl"));
    if (!ttl.ok()) return ttl.status();
    spec.ttl = *ttl;
  }
  spec.replace = keep.replace();
  if (spec.replace && spec.name.empty()) {
    return FieldError(Sub(field, "replace"), "set without a name; only a name can be replaced");
  }
  if (keep.has_if_version()) spec.if_version = keep.if_version();
  if (spec.if_version.has_value() && !spec.replace) {
    return FieldError(Sub(field, "if_version"), "set without replace, which it is a condition of");
  }
  return spec;
}

absl::Status CheckManagesMatrices(const Caller& caller, absl::string_view field) {
  if (caller.roles.Has(CallerRole::kMatrices)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(field, ": needs the role ", Name(CallerRole::kMatrices), ", which the caller ",
                   gemm::Quoted(caller.name), " does not have"));
}

// Reads product fields one after another, keeping the first error.
class ProductParser {
 public:
  ProductParser(v1::Product& product, const Caller& caller, PayloadRule payload)
      : product_(product), caller_(caller), payload_(payload) {}

  absl::StatusOr<ProductRequest> Parse() {
    absl::Status status = Operands();
    if (status.ok()) status = Batch();
    if (product_.has_row_block()) request_.spec.product_rows = product_.row_block().product_rows();
    if (status.ok()) status = Scalars();
    if (status.ok()) status = Result();
    if (!status.ok()) return status;
    return std::move(request_);
  }

 private:
  // The elements of the operand, where its source is `data`.
  absl::Status Data(std::string& data, const std::optional<Shape>& shape, Role role,
                    const std::string& field) {
    if (!shape.has_value()) {
      return FieldError(Sub(field, "shape"), "not set; only a resident matrix goes without");
    }
    if (data.size() != shape->dense_bytes()) {
      return FieldError(Sub(field, "data"), absl::StrCat(data.size(), " bytes; ", ToString(*shape),
                                                         " takes ", shape->dense_bytes()));
    }
    request_.inline_data.emplace_back(role, absl::Cord(std::move(data)));
    return absl::OkStatus();
  }

  absl::Status Source(v1::Operand& operand, Role role, const std::string& field,
                      OperandSpec& spec) {
    switch (operand.source_case()) {
      case v1::Operand::kPayload:
        if (payload_ == PayloadRule::kAllowed) return absl::OkStatus();
        return FieldError(Sub(field, "payload"),
                          "a unary call has no chunks; give data, matrix or generator, or call "
                          "Multiply");
      case v1::Operand::kMatrix: {
        absl::StatusOr<MatrixKey> key = ParseKey(operand.matrix(), caller_, Sub(field, "matrix"));
        if (!key.ok()) return key.status();
        const absl::Status may = operand.matrix().release()
                                     ? CheckManagesMatrices(caller_, Sub(field, "matrix.release"))
                                     : absl::OkStatus();
        if (!may.ok()) return may;
        spec.source = FromResident{*std::move(key), operand.matrix().release()};
        return absl::OkStatus();
      }
      case v1::Operand::kGenerator: {
        const absl::StatusOr<gemm::GeneratorSpec> generator = ParseGenerator(
            operand.generator(), spec.shape ? std::optional(spec.shape->type) : std::nullopt,
            Sub(field, "generator"));
        if (!generator.ok()) return generator.status();
        spec.source = FromGenerator{*generator};
        return absl::OkStatus();
      }
      case v1::Operand::kData:
        return Data(*operand.mutable_data(), spec.shape, role, field);
      case v1::Operand::SOURCE_NOT_SET:
        break;
    }
    return FieldError(Sub(field, "source"), "not set; give payload, data, matrix or generator");
  }

  absl::StatusOr<OperandSpec> Operand(v1::Operand& operand, Role role) {
    const std::string field = absl::StrCat("product.", Name(role));
    OperandSpec spec;
    if (operand.has_shape()) {
      absl::StatusOr<Shape> shape = ParseShape(operand.shape(), Sub(field, "shape"));
      if (!shape.ok()) return shape.status();
      spec.shape = *shape;
    }
    if (absl::Status status = Source(operand, role, field, spec); !status.ok()) return status;
    return spec;
  }

  template <typename Target>
  absl::Status Operand(v1::Operand& operand, Role role, Target& target) {
    absl::StatusOr<OperandSpec> spec = Operand(operand, role);
    if (!spec.ok()) return spec.status();
    target = *std::move(spec);
    return absl::OkStatus();
  }

  absl::Status Operands() {
    JobSpec& spec = request_.spec;
    if (!product_.has_a()) return FieldError("product.a", "not set; every product has an A");
    if (!product_.has_b()) return FieldError("product.b", "not set; every product has a B");
    absl::Status status = Operand(*product_.mutable_a(), Role::kA, spec.a);
    if (status.ok()) status = Operand(*product_.mutable_b(), Role::kB, spec.b);
    if (status.ok() && product_.has_c()) status = Operand(*product_.mutable_c(), Role::kC, spec.c);
    if (status.ok() && product_.has_bias())
      status = Operand(*product_.mutable_bias(), Role::kBias, spec.bias);
    if (status.ok() && product_.has_scales_a()) {
      status = Operand(*product_.mutable_scales_a(), Role::kScalesA, spec.scales_a);
    }
    if (status.ok() && product_.has_scales_b()) {
      status = Operand(*product_.mutable_scales_b(), Role::kScalesB, spec.scales_b);
    }
    return status;
  }

  absl::Status Batch() {
    JobSpec& spec = request_.spec;
    if (product_.has_batch_count()) spec.batch = product_.batch_count();
    spec.group.reserve(static_cast<size_t>(product_.group_size()));
    for (const v1::ProductSize& size : product_.group()) {
      spec.group.push_back({.m = size.m(), .n = size.n(), .k = size.k()});
    }
    constexpr absl::string_view kField = "product.shared_operands";
    for (const int named : product_.shared_operands()) {
      const absl::StatusOr<Role> role = ParseRole(named, kField);
      if (!role.ok()) return role.status();
      bool& shared = spec.shared[*role];
      if (shared) return FieldError(kField, absl::StrCat(Name(*role), " is named twice"));
      shared = true;
    }
    return absl::OkStatus();
  }

  static absl::Status Scale(bool given, double scale, absl::string_view field, double& out) {
    if (!given) return absl::OkStatus();
    if (!std::isfinite(scale) || scale <= 0) {
      return FieldError(field, absl::StrCat(scale, "; it must be finite and above 0"));
    }
    out = scale;
    return absl::OkStatus();
  }

  absl::Status Scalars() {
    JobSpec& spec = request_.spec;
    if (product_.has_alpha()) spec.alpha = product_.alpha();
    absl::Status scales =
        Scale(product_.has_scale_a(), product_.scale_a(), "product.scale_a", spec.scale_a);
    if (scales.ok()) {
      scales = Scale(product_.has_scale_b(), product_.scale_b(), "product.scale_b", spec.scale_b);
    }
    if (!scales.ok()) return scales;
    if (product_.has_beta()) spec.beta = product_.beta();
    if (product_.has_leaky_slope()) spec.leaky_slope = product_.leaky_slope();
    spec.transpose_a = product_.transpose_a();
    spec.transpose_b = product_.transpose_b();
    const auto activation = ParseActivation(product_.activation(), "product.activation");
    if (!activation.ok()) return activation.status();
    spec.activation = *activation;
    const auto type = ParseOptionalDataType(product_.output_dtype(), "product.output_dtype");
    if (!type.ok()) return type.status();
    spec.output_type = *type;
    const auto column_major = ParseColumnMajor(product_.output_layout(), "product.output_layout");
    if (!column_major.ok()) return column_major.status();
    spec.output_column_major = *column_major;
    const auto compute = ParseComputeMode(product_.compute(), "product.compute");
    if (!compute.ok()) return compute.status();
    spec.compute = *compute;
    const auto verify = ParseVerify(product_.verify(), "product.verify");
    if (!verify.ok()) return verify.status();
    spec.verify = *verify;
    return Kernel();
  }

  absl::Status Kernel() {
    const v1::KernelChoice& choice = product_.kernel();
    KernelRequest& kernel = request_.spec.kernel;
    absl::Status status = CheckOptionalName(choice.name(), "product.kernel.name");
    if (status.ok()) status = CheckOptionalName(choice.family(), "product.kernel.family");
    if (status.ok() && choice.params().size() > kMaxKernelParams) {
      status = FieldError(
          "product.kernel.params",
          absl::StrCat(choice.params().size(), " of them; it may have up to ", kMaxKernelParams));
    }
    for (const auto& [name, value] : choice.params()) {
      if (status.ok()) status = CheckNameBytes(name, "a name of product.kernel.params");
      if (!status.ok()) return status;
      kernel.params[name] = value;
    }
    if (choice.name() != "auto") kernel.name = choice.name();
    kernel.family = choice.family();
    return status;
  }

  absl::Status Result() {
    if (!product_.has_result()) return absl::OkStatus();
    JobSpec& spec = request_.spec;
    spec.stream_result = product_.result().stream();
    if (product_.result().has_keep()) {
      absl::StatusOr<KeepSpec> keep =
          ParseKeep(product_.result().keep(), caller_, "product.result.keep");
      if (!keep.ok()) return keep.status();
      const absl::Status may = CheckManagesMatrices(caller_, "product.result.keep");
      if (!may.ok()) return may;
      spec.keep_result = *std::move(keep);
    }
    return absl::OkStatus();
  }

  v1::Product& product_;
  const Caller& caller_;
  const PayloadRule payload_;
  ProductRequest request_;
};

}  // namespace

absl::StatusOr<absl::Duration> ParseDuration(const google::protobuf::Duration& duration,
                                             absl::Duration shortest, absl::string_view field) {
  constexpr int64_t kMaxSeconds = 315'576'000'000;  // as duration.proto says
  constexpr int32_t kMaxNanos = 999'999'999;
  const int64_t seconds = duration.seconds();
  const int32_t nanos = duration.nanos();
  const bool valid = -kMaxSeconds <= seconds && seconds <= kMaxSeconds && -kMaxNanos <= nanos &&
                     nanos <= kMaxNanos && !(seconds > 0 && nanos < 0) &&
                     !(seconds < 0 && nanos > 0);
  if (!valid) {
    return FieldError(field, absl::StrCat(seconds, " s and ", nanos, " ns; seconds must be from -",
                                          kMaxSeconds, " to ", kMaxSeconds, ", nanos from -",
                                          kMaxNanos, " to ", kMaxNanos, ", both of one sign"));
  }
  const absl::Duration value = absl::Seconds(seconds) + absl::Nanoseconds(nanos);
  if (value < shortest) {
    return FieldError(field, absl::StrCat(absl::FormatDuration(value), "; it must be at least ",
                                          absl::FormatDuration(shortest)));
  }
  return value;
}

absl::StatusOr<gemm::GeneratorSpec> ParseGenerator(const v1::Generator& generator,
                                                   std::optional<gemm::DType> type,
                                                   absl::string_view field) {
  // Elements are rounded to f32 first, those of f64 too.
  const gemm::DType element = type.value_or(gemm::DType::kF32) == gemm::DType::kF64
                                  ? gemm::DType::kF32
                                  : type.value_or(gemm::DType::kF32);
  const auto fits = [&](const std::string& name, double value) {
    if (std::isfinite(gemm::RoundedElement(value, element))) return absl::OkStatus();
    return FieldError(Sub(field, name),
                      absl::StrCat(value, "; elements go through ", gemm::Name(element),
                                   ", whose largest is ", gemm::LargestFinite(element)));
  };
  gemm::GeneratorSpec spec{.seed = generator.seed()};
  switch (generator.distribution_case()) {
    case v1::Generator::kUniform: {
      const double low = generator.uniform().low();
      const double high = generator.uniform().high();
      spec.distribution = gemm::Distribution::kUniform;
      if (low == 0 && high == 0) break;
      if (!std::isfinite(low) || !std::isfinite(high) || low >= high) {
        return FieldError(Sub(field, "uniform"), absl::StrCat("low ", low, ", high ", high,
                                                              "; low < high and both finite"));
      }
      for (const auto& [name, value] : {std::pair("uniform.low", low), {"uniform.high", high}}) {
        if (absl::Status status = fits(name, value); !status.ok()) return status;
      }
      spec.low_or_mean = low;
      spec.high_or_stddev = high;
      break;
    }
    case v1::Generator::kNormal: {
      const double mean = generator.normal().mean();
      const double stddev = generator.normal().stddev();
      spec.distribution = gemm::Distribution::kNormal;
      if (mean == 0 && stddev == 0) break;
      if (!std::isfinite(mean) || !std::isfinite(stddev) || stddev <= 0) {
        return FieldError(Sub(field, "normal"), absl::StrCat("mean ", mean, ", stddev ", stddev,
                                                             "; stddev > 0 and both finite"));
      }
      for (const auto& [name, value] :
           {std::pair("normal.mean", mean), {"normal.stddev", stddev}}) {
        if (absl::Status status = fits(name, value); !status.ok()) return status;
      }
      spec.low_or_mean = mean;
      spec.high_or_stddev = stddev;
      break;
    }
    case v1::Generator::DISTRIBUTION_NOT_SET:
      return FieldError(Sub(field, "distribution"), "not set; give uniform or normal");
  }
  return spec;
}

absl::StatusOr<MatrixKey> ParseKey(const v1::MatrixRef& ref, const Caller& caller,
                                   absl::string_view field) {
  absl::Status status = CheckOptionalName(ref.id(), Sub(field, "id"));
  if (status.ok()) status = CheckOptionalName(ref.name(), Sub(field, "name"));
  if (status.ok()) status = CheckOptionalName(ref.owner(), Sub(field, "owner"));
  if (!status.ok()) return status;
  if (ref.id().empty() && ref.name().empty()) {
    return FieldError(field, "neither id nor name is set; give one");
  }
  MatrixKey key{.id = ref.id(), .name = ref.name(), .caller = caller.name};
  key.shared = ref.id().empty() && ref.shared();
  if (ref.has_version()) key.version = ref.version();
  if (ref.has_owner()) key.owner = ref.owner();
  return key;
}

absl::StatusOr<ProductRequest> ParseProduct(v1::Product& product, const Caller& caller,
                                            PayloadRule payload, absl::Time arrived,
                                            absl::Time call_deadline) {
  absl::StatusOr<ProductRequest> request = ProductParser(product, caller, payload).Parse();
  if (!request.ok()) return request;
  request->spec.deadline = call_deadline;
  if (product.has_timeout()) {
    const absl::StatusOr<absl::Duration> timeout =
        ParseDuration(product.timeout(), kShortestTimeout, "product.timeout");
    if (!timeout.ok()) return timeout.status();
    request->spec.deadline = std::min(call_deadline, arrived + *timeout);
  }
  return request;
}

absl::StatusOr<UploadSpec> ParseUpload(const v1::PutMatrixHeader& header, const Caller& caller,
                                       absl::Time call_deadline) {
  UploadSpec spec;
  spec.device = header.device();
  spec.upload_id = header.upload_id();
  spec.deadline = call_deadline;
  if (!header.has_shape()) return FieldError("header.shape", "not set");
  const absl::StatusOr<Shape> shape = ParseShape(header.shape(), "header.shape");
  if (!shape.ok()) return shape.status();
  spec.shape = *shape;
  absl::StatusOr<KeepSpec> keep = ParseKeep(header.keep(), caller, "header.keep");
  if (!keep.ok()) return keep.status();
  spec.keep = *std::move(keep);
  absl::Status names = CheckOptionalName(spec.upload_id, "header.upload_id");
  if (names.ok()) names = CheckOptionalName(spec.device, "header.device");
  if (!names.ok()) return names;
  if (header.has_generator()) {
    const auto generator = ParseGenerator(header.generator(), spec.shape.type, "header.generator");
    if (!generator.ok()) return generator.status();
    spec.generator = *generator;
  }
  if (header.has_range()) spec.range = ByteSpan{header.range().offset(), header.range().length()};
  return spec;
}

absl::StatusOr<DownloadSpec> ParseDownload(const v1::GetMatrixRequest& request,
                                           const Caller& caller, absl::Time call_deadline) {
  DownloadSpec spec{.release = request.matrix().release(), .deadline = call_deadline};
  absl::StatusOr<MatrixKey> key = ParseKey(request.matrix(), caller, "matrix");
  if (!key.ok()) return key.status();
  spec.key = *std::move(key);
  if (request.has_range())
    spec.range = ByteSpan{request.range().offset(), request.range().length()};
  return spec;
}

}  // namespace gemmd
