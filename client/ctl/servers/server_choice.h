// The server to call, and the credentials for it.
#pragma once

#include "absl/status/status.h"
#include "client/ctl/context.h"
#include "client/ctl/servers/config.h"

namespace gemmd::ctl {

// The address of GEMMCTL_ADDRESS, else of GEMMD_ADDRESS; empty where neither is set.
std::string AddressFromEnvironment(const Environment& environment);

// Completes the options. The server is named by the first of these that is set:
//
//   --address or --context, not both
//   GEMMCTL_CONTEXT
//   GEMMCTL_ADDRESS, GEMMD_ADDRESS
//   current-context of the configuration file
//
// A context gives its own credentials with its address, and to no other address. An option
// counts before a variable, and that before the context's key, but with --context no
// variable of a server or its credentials counts. INVALID_ARGUMENT is a wrong command line.
absl::Status ChooseServer(bool address_given, const Environment& environment,
                          GlobalOptions& global);

}  // namespace gemmd::ctl
