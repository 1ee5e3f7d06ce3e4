// A number for each connection. gRPC has none.
#pragma once

#include <grpc/grpc_security.h>

#include <cstdint>

namespace gemmd {

// The connection's number, above 0; a new one at the first call. Call this before anything else
// reads `connection`: gRPC may have the headers of two of its calls on two threads.
uint64_t NumberConnection(grpc_auth_context* connection);

// The number of the call's connection; 0 where it has none.
uint64_t ConnectionOf(grpc_call* call);

}  // namespace gemmd
