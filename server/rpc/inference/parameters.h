// The parameters of a request: how its product is to be computed.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemm/v1/gemm.pb.h"
#include "google/protobuf/map.h"
#include "inference/inference.pb.h"
#include "server/rpc/inference/models.h"

namespace gemmd {

using InferParameters = google::protobuf::Map<std::string, inference::InferParameter>;

// The text of a parameter; empty where there is none. INVALID_ARGUMENT where it is no string.
absl::StatusOr<std::string> TextOf(const InferParameters& parameters, const std::string& name);
// A whole number of at least 0; 0 where there is none.
absl::StatusOr<uint64_t> CountOf(const InferParameters& parameters, const std::string& name);

// Sets what the parameters say of the product; those of inputs (TextOf) it leaves alone, and those
// of Triton that say nothing here, such as `priority`. INVALID_ARGUMENT for any other that the
// model has not, and for wrong values.
absl::Status SetParameters(const InferParameters& parameters, ModelKind kind,
                           gemm::v1::Product& product);

}  // namespace gemmd
