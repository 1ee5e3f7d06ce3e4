// Puts Identity before every call of a gRPC server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_context.h"
#include "server/identity/identity.h"

namespace gemmd {

// Says whether a connection, by its number (connection_number.h), may begin one more call. From
// any thread.
using ConnectionCheck = std::function<absl::Status(uint64_t connection, bool of_caller)>;

// Plain connections, or TLS by the files of `identity`, which must outlive the server.
// Every call of every service is checked before the service sees it: first who makes it, then
// `check`. A new version of the files holds from the next connection on.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const Identity& identity,
                                                               ConnectionCheck check);

// Who makes a call of this method of the contract, or of this path, "/grpc.reflection.v1..." and
// the like, which was let through, by what the callers file says now. UNAUTHENTICATED or
// PERMISSION_DENIED where it says so no longer.
absl::StatusOr<CallerPtr> CallerOf(const Identity& identity,
                                   const grpc::CallbackServerContext& call,
                                   absl::string_view method);

}  // namespace gemmd
