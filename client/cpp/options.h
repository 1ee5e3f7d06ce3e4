// How a client connects, and how a call is made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace gemmd::client {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;

// Files in PEM. All empty: the system's root certificates, no client certificate.
struct TlsOptions {
  std::string root_certificates_file;
  // Both or neither.
  std::string private_key_file;
  std::string certificate_chain_file;
  // The host name that the server's certificate must have, where it is not the
  // one of the address.
  std::string server_name;
};

struct ClientOptions {
  // As gRPC takes it: "host:port", "unix:/path", "dns:///name:port".
  std::string address = "127.0.0.1:50051";

  // Connections to the server, 1 to 64. Each has a TCP connection of its own;
  // calls take turns on them, and a large matrix is split over all of them.
  int channels = 8;

  // Payload bytes of one message, 4 KiB to 64 MiB; never more than the server
  // takes.
  uint64_t chunk_bytes = kMiB;

  // A product whose operands to send, and whose result, together have at most
  // this many bytes goes as one message each way; at most 64 MiB.
  uint64_t unary_threshold_bytes = 256 << 10;

  // A matrix of at least this many bytes is split over the channels.
  uint64_t stripe_threshold_bytes = 8 * kMiB;

  // The largest message that this client takes.
  uint64_t max_message_bytes = 64 * kMiB;

  // A connection on which nothing has come for `keepalive_interval` while a call
  // is under way is asked whether it lives, and its calls end with UNAVAILABLE
  // where no answer comes within `keepalive_timeout`: so a peer that is gone
  // without a word ends a call even where nothing else bounds it. gemmd gives a
  // connection up that is asked more often than every five seconds.
  absl::Duration keepalive_interval = absl::Seconds(30);
  absl::Duration keepalive_timeout = absl::Seconds(20);

  // For calls that name no timeout of their own. The server bounds no product
  // that waits or runs, so a service should name one.
  absl::Duration default_timeout = absl::InfiniteDuration();

  // How long Connect waits for the server to answer.
  absl::Duration connect_timeout = absl::Seconds(10);

  // How long operands and results that the library keeps on the server for a
  // split product outlive a client that dies in the middle.
  absl::Duration transfer_ttl = absl::Minutes(2);

  // Set: TLS. Left out: plain TCP, for loopback and trusted networks only.
  std::optional<TlsOptions> tls;

  // Put before gRPC's own user agent, such as "gemmctl/1.2.3".
  std::string user_agent;
};

// Ends a call early, from any thread: give the same canceller to the call and
// to whoever may end it. Copies share one state. One canceller may serve many
// calls; a call begun after Cancel ends at once.
class Canceller {
 public:
  Canceller();

  // The calls end with CANCELLED, unless they have ended already. Returns at
  // once; the calls' own completion tells when they have.
  void Cancel() const;
  bool cancelled() const;

  class State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

// Payload bytes done and in all, both directions together. `total` may grow
// once the size of a result is known.
using Progress = std::function<void(uint64_t done_bytes, uint64_t total_bytes)>;

// How the payload of a product goes.
enum class Transport {
  kAuto,     // by size, as ClientOptions has it
  kUnary,    // one message each way
  kStream,   // one stream
  kStriped,  // every matrix to send or receive of at least two chunks is split
             // over the channels
};

struct CallOptions {
  // From now to the end of the call, which fails with DEADLINE_EXCEEDED. Left
  // out: the client's default.
  std::optional<absl::Duration> timeout;
  // Left out: nothing cancels the call from outside.
  std::optional<Canceller> canceller;
  // Told as the payload goes, from the library's threads, one call at a time.
  // Must be quick and must not block. Not told of a product that goes as one
  // message each way.
  Progress progress;
  // Multiply only. INVALID_ARGUMENT where kUnary cannot be: an operand whose
  // message would pass the server's limit.
  Transport transport = Transport::kAuto;
};

}  // namespace gemmd::client
