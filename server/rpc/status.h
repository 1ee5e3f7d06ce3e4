// Statuses between the engine and gRPC.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"

namespace gemmd {

// The same code and sentence.
grpc::Status ToGrpc(const absl::Status& status);

// INVALID_ARGUMENT: "<field>: <what>".
absl::Status FieldError(absl::string_view field, absl::string_view what);

// When the caller stops waiting; InfiniteFuture where it set no deadline.
absl::Time CallDeadline(const grpc::CallbackServerContext& context);

// Why a call that gRPC reports as cancelled ended: DEADLINE_EXCEEDED or CANCELLED.
absl::Status WhyCancelled(const grpc::CallbackServerContext& context);

}  // namespace gemmd
