// The models of the Open Inference Protocol: matmul, matmul_batched, and one for each resident
// matrix that has a name, linear/NAME, or shared_linear/NAME where the name is a shared one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemm/dtype.h"
#include "inference/inference.pb.h"
#include "server/engine/store/matrix.h"
#include "server/identity/roles.h"
#include "server/rpc/context/service_context.h"

namespace gemmd {

inline constexpr absl::string_view kMatmulName = "matmul";
inline constexpr absl::string_view kBatchedName = "matmul_batched";
// The version of both.
inline constexpr absl::string_view kMatmulVersion = "1";

enum class ModelKind : uint8_t { kMatmul, kBatched, kLinear };

// The model that a request names.
struct Model {
  ModelKind kind = ModelKind::kMatmul;
  std::string name;
  std::string version;  // that the request names; empty: any
  MatrixKey weight;     // of kLinear
};

// The longest number of a version.
inline constexpr size_t kMaxVersionBytes = 20;

// NOT_FOUND for a name or version that no model can have; INVALID_ARGUMENT for a longer version.
// Whether a weight is there the engine says.
absl::StatusOr<Model> FindModel(absl::string_view name, absl::string_view version,
                                const Caller& caller);

// The version that a request to the model takes now; empty where there is none.
std::string VersionNow(ServiceContext& context, const Model& model);

// The model of a resident matrix that has a name.
std::string LinearName(const MatrixRecord& matrix);

struct TensorDescription {
  absl::string_view name;
  gemm::DType type = gemm::DType::kF32;
  std::vector<int64_t> dims;  // without the batch; -1: any
};

struct ModelDescription {
  std::string version;
  int32_t max_batch = 0;  // above 0: every tensor has a first dimension beside `dims`
  std::vector<TensorDescription> inputs;
  TensorDescription output;
};

// Errors as of Engine::DescribeMatrix; NOT_FOUND also for a matrix whose type no operand has.
absl::StatusOr<ModelDescription> DescribeModel(ServiceContext& context, const Model& model);

void Fill(const Model& model, const ModelDescription& description,
          inference::ModelMetadataResponse& out);
void Fill(const Model& model, const ModelDescription& description, inference::ModelConfig& out);

// Every model of the caller, those of matrices where it has the role matrices. RESOURCE_EXHAUSTED
// where they do not fit one message.
absl::Status ListModels(ServiceContext& context, const Caller& caller,
                        inference::RepositoryIndexResponse& out);

}  // namespace gemmd
