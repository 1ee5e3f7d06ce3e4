// Ends a connection of this server, which gRPC has no way to ask for.
#pragma once

#include <string>

namespace gemmd {

// The one from `peer`, as ServerContext::peer() names it: "ipv4:10.0.0.1:40000" or
// "ipv6:%5B::1%5D:40000". gRPC then sees the end of its socket and lets go of what it
// had left to write. False where there is none, as for a Unix socket, whose peers have
// no address.
bool DropConnection(const std::string& peer);

}  // namespace gemmd
