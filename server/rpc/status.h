// Statuses between the engine and gRPC.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"

namespace gemmd {

// The sentence as it is sent: in printable ASCII, of at most 1.5 KiB.
std::string MessageOf(const absl::Status& status);

// The same code, and the sentence as it is sent.
grpc::Status ToGrpc(const absl::Status& status);

// INVALID_ARGUMENT: "<field>: <what>".
absl::Status FieldError(absl::string_view field, absl::string_view what);

// Of anything that has a name: matrices, uploads, devices, kernels, families.
inline constexpr size_t kMaxNameBytes = 128;

// INVALID_ARGUMENT where a name has no byte, or more than kMaxNameBytes.
absl::Status CheckNameBytes(absl::string_view name, absl::string_view field);

// When the caller stops waiting; InfiniteFuture where it set no deadline.
absl::Time CallDeadline(const grpc::CallbackServerContext& context);

// Why a call that gRPC reports as cancelled ended: DEADLINE_EXCEEDED or CANCELLED.
absl::Status WhyCancelled(const grpc::CallbackServerContext& context);

}  // namespace gemmd
