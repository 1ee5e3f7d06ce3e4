// Puts Identity before every call of a gRPC server.
#pragma once

#include <memory>

#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_context.h"
#include "server/identity/identity.h"

namespace gemmd {

// Plain connections, or TLS by the files of `identity`, which must outlive the server.
// Every call of every service is checked before the service sees it. A new version of
// the files holds from the next connection on.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const Identity& identity);

// Who makes a call of this method of the contract, which was let through, by what the callers
// file says now. UNAUTHENTICATED or PERMISSION_DENIED where it says so no longer.
absl::StatusOr<CallerPtr> CallerOf(const Identity& identity,
                                   const grpc::CallbackServerContext& call,
                                   absl::string_view method);

}  // namespace gemmd
