// Puts Identity before every call of a gRPC server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_context.h"
#include "server/identity/identity.h"

namespace gemmd {

// Told of every call at its headers: the number of its connection (connection_number.h), and whose
// it is (Identity::Check), or why it may not go on. Says whether it may. From any thread.
using CallCheck =
    std::function<absl::Status(uint64_t connection, const absl::StatusOr<CallerPtr>& caller)>;

// Plain connections, or TLS by the files of `identity`, which must outlive the server.
// Every call of every service is checked before the service sees it: first who makes it, then
// `check`. A new version of the files holds from the next connection on.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const Identity& identity,
                                                               CallCheck check);

// Who makes a call of this method of the contract, or of this path, "/grpc.reflection.v1..." and
// the like, which was let through, by what the callers file says now. UNAUTHENTICATED or
// PERMISSION_DENIED where it says so no longer.
absl::StatusOr<CallerPtr> CallerOf(const Identity& identity,
                                   const grpc::CallbackServerContext& call,
                                   absl::string_view method);

}  // namespace gemmd
