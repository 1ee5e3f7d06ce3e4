// How a client connects, and how a call is made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "gemmd/client/retry.h"

namespace gemmd::client {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;

// Files in PEM. All empty: the system's root certificates, no client certificate.
struct TlsOptions {
  std::string root_certificates_file;
  // Both or neither.
  std::string private_key_file;
  std::string certificate_chain_file;
  // The host name in the server's certificate, where it differs from that of the
  // address.
  std::string server_name;
};

struct ClientOptions {
  // As gRPC takes it: "host:port", "unix:/path", "dns:///name:port".
  std::string address = "127.0.0.1:50051";

  // Channels to the server, 1 to 64, each with its own TCP connection. Calls take
  // turns on them; a large matrix is split over all of them.
  int channels = 8;

  // Payload bytes of one message, 4 KiB to 64 MiB; never more than the server
  // accepts.
  uint64_t chunk_bytes = kMiB;

  // A product takes one message each way if the operands to send and the result
  // together have at most this many bytes. At most 64 MiB.
  uint64_t unary_threshold_bytes = 256 << 10;

  // A matrix of at least this many bytes is split over the channels.
  uint64_t stripe_threshold_bytes = 8 * kMiB;

  // Blocks of rows for each channel, at most 64; 0: never. A product may go in blocks if A is sent
  // and D received, each of at least stripe_threshold_bytes: while rows of A are sent, rows of D
  // come back. See Transport::kRowBlocks.
  int row_blocks_per_channel = 4;

  // The largest message that this client accepts.
  uint64_t max_message_bytes = 64 * kMiB;

  // While a call is open, a connection that was silent for `keepalive_interval` is
  // pinged. If no answer comes within `keepalive_timeout`, its calls end with
  // UNAVAILABLE. So a server that disappears ends a call even without a deadline.
  // gemmd closes a connection that pings more often than every five seconds.
  absl::Duration keepalive_interval = absl::Seconds(30);
  absl::Duration keepalive_timeout = absl::Seconds(20);

  // For calls without a timeout of their own.
  absl::Duration default_timeout = absl::InfiniteDuration();

  // A call without a finite timeout ends with DEADLINE_EXCEEDED once nothing was sent or received
  // for so long. The time counts in which the server computes a product. InfiniteDuration: never.
  absl::Duration idle_timeout = absl::Minutes(5);

  // When a call is tried again. On by default: only calls are tried again that do the same when
  // they run twice, or that were refused. The budget bounds what they add to a server's load.
  RetryOptions retry = {};

  // How long Connect waits for the server to answer.
  absl::Duration connect_timeout = absl::Seconds(10);

  // The time to live of the operands and results that the library keeps on the
  // server for a split product, in case the client dies in between.
  absl::Duration transfer_ttl = absl::Minutes(2);

  // Set: TLS. Left out: plain TCP, for loopback and trusted networks only, and never through
  // the proxy of http_proxy.
  std::optional<TlsOptions> tls;

  // The bearer token that the server knows this client by, or the file that has it; white
  // space at its end does not count. At most one of them. Both empty: none is sent.
  std::string token;
  std::string token_file;
  // Without TLS, a token is sent only to this machine (unix:, localhost, 127.x, [::1]), unless
  // this is set. Set it if a proxy on this host adds TLS.
  bool token_without_tls = false;

  // Put before gRPC's own user agent, such as "gemmctl/1.2.3".
  std::string user_agent;
};

// Ends calls early, from any thread. Pass a copy in CallOptions and call Cancel on
// another one: copies share one state. One canceller may serve many calls. A call
// that begins after Cancel ends at once.
class Canceller {
 public:
  Canceller();

  // Ends the calls with CANCELLED, unless they have ended already. Returns at once;
  // the calls complete later.
  void Cancel() const;
  bool cancelled() const;

 private:
  friend class CancelHook;  // the library's own
  class State;

  std::shared_ptr<State> state_;
};

// Payload bytes transferred and in total, both directions together. The total may
// grow once the size of a result is known.
using Progress = std::function<void(uint64_t done_bytes, uint64_t total_bytes)>;

// How the payload of a product is transferred.
enum class Transport {
  kAuto,     // by size, as ClientOptions has it
  kUnary,    // one message each way
  kStream,   // one stream
  kStriped,  // every matrix to send or receive of at least two chunks is split
             // over the channels
  // B and the bias first, striped; then rows of A, and of C, in blocks over all channels, while
  // rows of D come back. The bits are those of the whole product. If the product or the kernel that
  // the server chooses does not allow that, it goes as kStriped. A kernel with
  // KernelInfo.row_blocks allows it. A product allows it if all of these hold:
  // - It is no batch and no group, and asks for no check.
  // - A is sent, row-major and without transpose_a; C is sent and row-major, or there is none.
  // - B and the bias are sent, or resident by id or with a version and not to be released. The bias
  //   may also be generated.
  // - The result is row-major, fetched and not kept.
  kRowBlocks,
};

struct CallOptions {
  // From now to the end of the call; past it: DEADLINE_EXCEEDED. Left out:
  // ClientOptions::default_timeout.
  std::optional<absl::Duration> timeout;
  // Left out: nothing cancels the call from outside.
  std::optional<Canceller> canceller;
  // Called as payload is transferred, from threads of the library, one call at a
  // time. Must be quick and must not block. Not called for a product that takes one
  // message each way.
  Progress progress;
  // Multiply only. INVALID_ARGUMENT for kUnary where a message would exceed the
  // server's limit.
  Transport transport = Transport::kAuto;
};

}  // namespace gemmd::client
