// Names of the other ends of connections.
#pragma once

#include <string>

namespace gemmd {

// The peer of a connected socket, as ServerContext::peer() names it: "ipv4:10.0.0.1:40000" or
// "ipv6:%5B::1%5D:40000". Empty where it has no address of its own, as that of a Unix socket.
std::string PeerName(int fd);

}  // namespace gemmd
