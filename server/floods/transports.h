// The connections of a gRPC server that have ended their handshake. gRPC tells of them
// through channelz alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gemmd {

// The server of this process that was started last.
intptr_t NewestServer();

// How many connections of the server are in use: from the end of the TLS handshake, where
// there is one, to their close. Takes milliseconds where there are thousands.
int64_t CountTransports(intptr_t server);

struct Transport {
  intptr_t id = 0;
  std::string peer;  // as ServerContext::peer() names it
};

// The server's connections whose number is above `after`, in its order. A later connection has a
// higher number.
std::vector<Transport> TransportsAfter(intptr_t server, intptr_t after);

struct TransportCalls {
  int64_t begun = 0;       // whose headers have come
  int64_t unfinished = 0;  // of these, those that gRPC has not destroyed
};

// nullopt where there is none of this number: gRPC has destroyed it, and with it its last call.
std::optional<TransportCalls> CallsOfTransport(intptr_t id);

}  // namespace gemmd
