// Keeps a header from ending the process (CVE-2023-1428).
//
// gRPC before 1.53 parses "grpclb_client_stats", a header that only its own load balancer sets in
// memory, from the wire too. Its authentication filter then copies all headers for the check of the
// caller (grpc_credentials.h) and calls abort() at this one. So one header ends the server, whoever
// sends it. This may go with gRPC 1.53.
#pragma once

#include "absl/status/status.h"

namespace gemmd {

// From now on gRPC drops that header as it comes. Call it before the first server. Further calls do
// nothing. FAILED_PRECONDITION if this gRPC would abort and cannot be told to drop it.
absl::Status DropAbortingHeader();

}  // namespace gemmd
