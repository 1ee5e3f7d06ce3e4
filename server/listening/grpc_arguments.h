// The settings of gRPC for messages and connections.
#pragma once

#include "absl/time/time.h"
#include "grpcpp/server_builder.h"
#include "server/rpc/context/service_context.h"

namespace gemmd {

struct ConnectionLimits {
  // Live calls on one connection.
  int streams = 1024;
  // Calls of a caller, or of an address, that are not over; of all together kCallersWorthOfCalls
  // (call_backlog.h) times as many.
  int calls_per_caller = 2048;
  // The most connections in their TLS handshake.
  int handshakes = 1024;
  // The longest metadata of a call, as HTTP/2 counts it: 32 bytes more for each entry.
  int header_bytes = 8192;
  // A connection without a call is closed after this time. 0: never.
  absl::Duration idle = absl::Minutes(15);
  // A connection may take so long until its client shows who it is, before it is closed to make
  // room for another. 0: for ever.
  absl::Duration proof = absl::Seconds(10);
  // The time that the calls of a connection get beyond RpcLimits::max_connection_age.
  absl::Duration age_grace = absl::Hours(1);
  // A client that is silent for so long is asked whether it is still there (a ping). Without an
  // answer within ConnectionPatience it is gone.
  absl::Duration keepalive = absl::Minutes(1);
};

// The longest message that gRPC takes. Up to there a message over the server's limit gets an answer
// that says what to do instead.
int TransportMessageLimit(const RpcLimits& limits);

// How long a peer's TCP may leave bytes unacknowledged, or a ping unanswered, until the
// connection is given up. A connection that takes nothing keeps the blocks of its last
// writes even of cancelled calls, so it must not outlive those by long.
absl::Duration ConnectionPatience(const RpcLimits& limits);

// Bounds on messages, headers, streams, handshakes, idle time and age, and the pings that
// notice dead peers.
void SetArguments(grpc::ServerBuilder& builder, const RpcLimits& rpc,
                  const ConnectionLimits& connections);

}  // namespace gemmd
