#include "server/rpc/inference/models.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gemm/problem.h"
#include "gemm/quote.h"
#include "server/rpc/context/status.h"
#include "server/rpc/inference/tensors.h"

namespace gemmd {
namespace {

constexpr absl::string_view kLinearPrefix = "linear/";
constexpr absl::string_view kSharedPrefix = "shared_linear/";
constexpr absl::string_view kPlatform = "gemmd";
// The rows of X, one sample each: m of the product.
constexpr int32_t kMostRows = 1 << 24;

absl::Status NoModel(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("model_name: ", gemm::Quoted(name),
                                          "; the models are matmul, matmul_batched, and "
                                          "linear/NAME or shared_linear/NAME where NAME is "
                                          "a resident matrix"));
}

absl::Status NoVersion(absl::string_view name, absl::string_view version) {
  return absl::NotFoundError(absl::StrCat("model_version: ", gemm::Quoted(name), " has no version ",
                                          gemm::Quoted(version)));
}

// The type of A times a B of this type where the request names none.
gemm::DType UsualOutput(gemm::DType type) {
  if (gemm::IsFp8(type)) return gemm::DType::kF16;
  return type == gemm::DType::kS8 ? gemm::DType::kS32 : type;
}

ModelDescription DescribeMatmul(bool batched) {
  return {.version = std::string(kMatmulVersion),
          .max_batch = batched ? static_cast<int32_t>(gemm::kMaxBatch) : 0,
          .inputs = {{.name = "A", .dims = {-1, -1}}, {.name = "B", .dims = {-1, -1}}},
          .output = {.name = "D", .dims = {-1, -1}}};
}

std::vector<int64_t> WithBatch(const ModelDescription& description,
                               const TensorDescription& tensor) {
  std::vector<int64_t> shape = tensor.dims;
  if (description.max_batch > 0) shape.insert(shape.begin(), -1);
  return shape;
}

void FillTensor(const ModelDescription& description, const TensorDescription& tensor,
                inference::ModelMetadataResponse::TensorMetadata& out) {
  out.set_name(std::string(tensor.name));
  out.set_datatype(std::string(DatatypeName(tensor.type)));
  for (const int64_t extent : WithBatch(description, tensor)) out.add_shape(extent);
}

// A ModelInput or a ModelOutput.
template <typename Tensor>
void FillConfig(const TensorDescription& tensor, Tensor& out) {
  out.set_name(std::string(tensor.name));
  out.set_data_type(ConfigType(tensor.type));
  for (const int64_t extent : tensor.dims) out.add_dims(extent);
}

void AddToIndex(std::string name, absl::string_view version,
                inference::RepositoryIndexResponse& out) {
  inference::RepositoryIndexResponse::ModelIndex& model = *out.add_models();
  model.set_name(std::move(name));
  model.set_version(std::string(version));
  model.set_state("READY");
}

absl::Status AddLinear(ServiceContext& context, const Caller& caller, bool shared,
                       inference::RepositoryIndexResponse& out) {
  MatrixQuery query = {.caller = caller.name, .shared = shared};
  do {
    const absl::StatusOr<MatrixPage> page = context.engine.ListMatrices(query);
    if (!page.ok()) return page.status();
    for (const MatrixRecord& matrix : page->matrices) {
      if (matrix.name.empty() || matrix.shape.type == gemm::DType::kS32) continue;
      AddToIndex(LinearName(matrix), absl::StrCat(matrix.version), out);
    }
    const absl::Status fits = CheckMessageBytes("models", out.ByteSizeLong(), context.limits);
    if (!fits.ok()) return fits;
    query.page_token = page->next_token;
  } while (!query.page_token.empty());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Model> FindModel(absl::string_view name, absl::string_view version,
                                const Caller& caller) {
  if (version.size() > kMaxVersionBytes) {
    return FieldError("model_version",
                      absl::StrCat(version.size(), " bytes; at most ", kMaxVersionBytes));
  }
  Model model = {.name = std::string(name), .version = std::string(version)};
  if (name == kMatmulName || name == kBatchedName) {
    if (!version.empty() && version != kMatmulVersion) return NoVersion(name, version);
    model.kind = name == kMatmulName ? ModelKind::kMatmul : ModelKind::kBatched;
    return model;
  }
  model.kind = ModelKind::kLinear;
  model.weight.caller = caller.name;
  model.weight.shared = absl::ConsumePrefix(&name, kSharedPrefix);
  if (!model.weight.shared && !absl::ConsumePrefix(&name, kLinearPrefix)) return NoModel(name);
  if (!CheckNameBytes(name, "model_name").ok()) return NoModel(model.name);
  model.weight.name = std::string(name);
  if (uint64_t number = 0; absl::SimpleAtoi(version, &number)) {
    model.weight.version = number;
    model.version = absl::StrCat(number);
  } else if (!version.empty()) {
    return NoVersion(model.name, version);
  }
  return model;
}

std::string VersionNow(ServiceContext& context, const Model& model) {
  if (model.kind != ModelKind::kLinear) return std::string(kMatmulVersion);
  if (!model.version.empty()) return model.version;
  const absl::StatusOr<MatrixRecord> weight = context.engine.DescribeMatrix(model.weight);
  return weight.ok() ? absl::StrCat(weight->version) : "";
}

std::string LinearName(const MatrixRecord& matrix) {
  return absl::StrCat(matrix.shared ? kSharedPrefix : kLinearPrefix, matrix.name);
}

absl::StatusOr<ModelDescription> DescribeModel(ServiceContext& context, const Model& model) {
  if (model.kind != ModelKind::kLinear) return DescribeMatmul(model.kind == ModelKind::kBatched);
  const absl::StatusOr<MatrixRecord> weight = context.engine.DescribeMatrix(model.weight);
  if (!weight.ok()) return weight.status();
  const gemm::DType type = weight->shape.type;
  if (type == gemm::DType::kS32) return NoModel(model.name);
  return ModelDescription{
      .version = absl::StrCat(weight->version),
      .max_batch = kMostRows,
      .inputs = {{.name = "X", .type = type, .dims = {weight->shape.rows}}},
      .output = {.name = "Y", .type = UsualOutput(type), .dims = {weight->shape.cols}}};
}

void Fill(const Model& model, const ModelDescription& description,
          inference::ModelMetadataResponse& out) {
  out.set_name(model.name);
  out.add_versions(description.version);
  out.set_platform(std::string(kPlatform));
  for (const TensorDescription& input : description.inputs) {
    FillTensor(description, input, *out.add_inputs());
  }
  FillTensor(description, description.output, *out.add_outputs());
}

void Fill(const Model& model, const ModelDescription& description, inference::ModelConfig& out) {
  out.set_name(model.name);
  out.set_platform(std::string(kPlatform));
  out.set_backend(std::string(kPlatform));
  out.set_max_batch_size(description.max_batch);
  for (const TensorDescription& input : description.inputs) FillConfig(input, *out.add_input());
  FillConfig(description.output, *out.add_output());
}

absl::Status ListModels(ServiceContext& context, const Caller& caller,
                        inference::RepositoryIndexResponse& out) {
  AddToIndex(std::string(kMatmulName), kMatmulVersion, out);
  AddToIndex(std::string(kBatchedName), kMatmulVersion, out);
  if (!caller.roles.Has(CallerRole::kMatrices)) return absl::OkStatus();
  const absl::Status own = AddLinear(context, caller, /*shared=*/false, out);
  return own.ok() ? AddLinear(context, caller, /*shared=*/true, out) : own;
}

}  // namespace gemmd
