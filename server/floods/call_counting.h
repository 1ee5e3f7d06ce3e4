// Joins UnfinishedCalls to gRPC.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "grpcpp/server_builder.h"
#include "server/floods/unfinished_calls.h"

namespace gemmd {

// A call's headers have come. RESOURCE_EXHAUSTED where its connection has too many unfinished
// calls, and this one must go no further.
absl::Status CountAtHeaders(UnfinishedCalls& calls, uint64_t connection, bool of_caller,
                            const std::string& caller);

// Has the server tell `calls`, which must outlive it, of the ends of the calls counted above.
void CountEnds(UnfinishedCalls& calls, grpc::ServerBuilder& builder);

}  // namespace gemmd
