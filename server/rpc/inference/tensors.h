// The types of tensors, and the elements of a request's inputs.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemm/dtype.h"
#include "inference/inference.pb.h"

namespace gemmd {

// "FP32". The protocol has no fp8: its elements are "UINT8".
absl::string_view DatatypeName(gemm::DType type);
inference::DataType ConfigType(gemm::DType type);

// Parses a datatype, or "E4M3" or "E5M2"; INVALID_ARGUMENT names `field` and what is allowed.
absl::StatusOr<gemm::DType> ParseTypeName(absl::string_view name, absl::string_view field);
// Of an input. `fp8`: what the request's parameter says its bytes are; empty: nothing.
absl::StatusOr<gemm::DType> ParseDatatype(absl::string_view datatype, absl::string_view fp8,
                                          absl::string_view field, absl::string_view parameter);

// The elements of an input, little-endian and dense. INVALID_ARGUMENT for elements of another type,
// out of its range, or of one that has no field (FP16, BF16).
absl::StatusOr<std::string> PackContents(const inference::InferTensorContents& contents,
                                         gemm::DType type, absl::string_view field);

}  // namespace gemmd
