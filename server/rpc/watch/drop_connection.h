// Closes a connection of this server. gRPC has no function for this.
#pragma once

#include <string>

namespace gemmd {

// Closes the connection from `peer`, as ServerContext::peer() names it:
// "ipv4:10.0.0.1:40000" or "ipv6:%5B::1%5D:40000". gRPC then sees the end of its socket,
// reads nothing more of what had come, and releases what it had left to write. Returns false where
// there is no such connection: it was closed before, or is one of a Unix socket, whose peers have
// no address.
bool DropConnection(const std::string& peer);

}  // namespace gemmd
