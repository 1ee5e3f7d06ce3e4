// Converts between the contract's enums and the engine's.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemm/dtype.h"
#include "gemm/problem.h"
#include "gemm/v1/gemm.pb.h"
#include "server/engine/job/job.h"

namespace gemmd {

gemm::v1::DataType ToProto(gemm::DType type);
gemm::v1::ComputeMode ToProto(gemm::Compute compute);
gemm::v1::Layout ToProtoLayout(bool column_major);
gemm::v1::Verify ToProto(Verify verify);
gemm::v1::OperandRole ToProto(Role role);
gemm::v1::CheckResult ToProto(CheckResult result);
gemm::v1::ChoiceRule ToProto(ChoiceRule rule);

// INVALID_ARGUMENT names `field`, the number given and the allowed names. Unspecified is
// an error for a required type, and nullopt or the contract's default elsewhere.
absl::StatusOr<gemm::DType> ParseDataType(int value, absl::string_view field);
absl::StatusOr<std::optional<gemm::DType>> ParseOptionalDataType(int value,
                                                                 absl::string_view field);
absl::StatusOr<std::optional<gemm::Compute>> ParseComputeMode(int value, absl::string_view field);
absl::StatusOr<gemm::Activation> ParseActivation(int value, absl::string_view field);
absl::StatusOr<bool> ParseColumnMajor(int layout, absl::string_view field);
absl::StatusOr<Verify> ParseVerify(int value, absl::string_view field);
absl::StatusOr<Role> ParseRole(int value, absl::string_view field);

}  // namespace gemmd
