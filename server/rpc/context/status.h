// Converts statuses between the engine and gRPC.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gemm/v1/gemm.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"

namespace gemmd {

// The message as it is sent: printable ASCII, at most 1.5 KiB.
std::string MessageOf(const absl::Status& status);

// What a status says beside its message: see StatusDetails of the contract.
struct ErrorDetails {
  std::optional<gemm::v1::RetryInfo> retry_info;
  std::optional<gemm::v1::QuotaFailure> quota_failure;
};
ErrorDetails DetailsOf(const absl::Status& status);

// The same code, with MessageOf(status) and DetailsOf(status).
grpc::Status ToGrpc(const absl::Status& status);

// INVALID_ARGUMENT: "<field>: <what>".
absl::Status FieldError(absl::string_view field, absl::string_view what);

// The longest name of a matrix, upload, device, kernel or family.
inline constexpr size_t kMaxNameBytes = 128;

// INVALID_ARGUMENT for an empty name, or one of more than kMaxNameBytes.
absl::Status CheckNameBytes(absl::string_view name, absl::string_view field);

// The deadline of the call; InfiniteFuture if it has none.
absl::Time CallDeadline(const grpc::CallbackServerContext& context);

// Why a call that gRPC reports as cancelled ended: DEADLINE_EXCEEDED or CANCELLED.
absl::Status WhyCancelled(const grpc::CallbackServerContext& context);

}  // namespace gemmd
