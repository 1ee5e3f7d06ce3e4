#include "server/listening/grpc_arguments.h"

#include <algorithm>
#include <cstdint>

namespace gemmd {
namespace {

// A connection that does not end its handshake, or does not speak HTTP/2, holds its place no
// longer than this.
constexpr absl::Duration kHandshakeTimeout = absl::Seconds(10);
// A client that sends pings more often is disconnected.
constexpr absl::Duration kShortestPingPeriod = absl::Seconds(5);

// 0 would be "at once" there.
void SetTime(grpc::ServerBuilder& builder, const char* argument, absl::Duration time) {
  const absl::Duration whole = absl::Ceil(time, absl::Milliseconds(1));
  builder.AddChannelArgument(argument, static_cast<int>(absl::ToInt64Milliseconds(whole)));
}

// gRPC inflates a message before it looks at its length: kilobytes would become gigabytes. A
// call with a compressed message is UNIMPLEMENTED, and gRPC tells clients what it takes
// (grpc-accept-encoding).
void TakeNoCompressedMessages(grpc::ServerBuilder& builder) {
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  // A message may arrive before its call has been refused.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
}

// gRPC tells a connection of that age, give or take a tenth, to go (GOAWAY): new calls come on
// another one. Multiply streams end by themselves when they are as old (GrowOld of
// call_life.h). So whatever is left after that time again, and the grace, is no job that
// --max-connection-age-grace did not give its time.
void SetAge(grpc::ServerBuilder& builder, absl::Duration age, const ConnectionLimits& connections) {
  if (connections.idle > absl::ZeroDuration()) {
    SetTime(builder, GRPC_ARG_MAX_CONNECTION_IDLE_MS, connections.idle);
  }
  if (age <= absl::ZeroDuration()) return;
  SetTime(builder, GRPC_ARG_MAX_CONNECTION_AGE_MS, age);
  SetTime(builder, GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, age + connections.age_grace);
}

}  // namespace

int TransportMessageLimit(const RpcLimits& limits) {
  return static_cast<int>(std::min<size_t>(2 * limits.max_message_bytes + 64 * kKiB, INT32_MAX));
}

absl::Duration ConnectionPatience(const RpcLimits& limits) {
  return std::clamp(limits.send_timeout, absl::Seconds(1), absl::Seconds(20));
}

void SetArguments(grpc::ServerBuilder& builder, const RpcLimits& rpc,
                  const ConnectionLimits& connections) {
  builder.SetMaxReceiveMessageSize(TransportMessageLimit(rpc));
  builder.SetMaxSendMessageSize(-1);
  TakeNoCompressedMessages(builder);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, connections.streams);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, connections.header_bytes);
  // A client that is gone without a word is noticed, and its jobs cancelled.
  SetTime(builder, GRPC_ARG_KEEPALIVE_TIME_MS, connections.keepalive);
  // gRPC also sets TCP_USER_TIMEOUT by this.
  SetTime(builder, GRPC_ARG_KEEPALIVE_TIMEOUT_MS, ConnectionPatience(rpc));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  SetTime(builder, GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeout);
  SetTime(builder, GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kShortestPingPeriod);
  SetAge(builder, rpc.max_connection_age, connections);
}

}  // namespace gemmd
