// The connections of a gRPC server that have ended their handshake. gRPC tells of them
// through channelz alone.
#pragma once

#include <cstdint>

namespace gemmd {

// The server of this process that was started last.
intptr_t NewestServer();

// How many connections of the server are in use: from the end of the TLS handshake, where
// there is one, to their close. Takes milliseconds where there are thousands.
int64_t CountTransports(intptr_t server);

}  // namespace gemmd
