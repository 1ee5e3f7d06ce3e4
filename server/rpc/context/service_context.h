// The state that all RPCs of the service share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/benchmark/benchmarks.h"
#include "server/engine/bounds/bound_error.h"
#include "server/engine/bounds/options.h"
#include "server/engine/engine.h"
#include "server/identity/identity.h"

namespace gemmd {

class CallerTraffic;
class LiveCalls;

struct RpcLimits {
  // The longest message, in either direction.
  size_t max_message_bytes = 8 * kMiB;
  int max_jobs_per_stream = 1024;
  // The most received payload of a call that the engine has not taken yet. Above it, the
  // call's stream is not read, and HTTP/2 flow control stops the sender.
  size_t read_window_bytes = 8 * kMiB;
  // A call is cancelled when its client reads nothing for this long.
  absl::Duration send_timeout = absl::Seconds(30);
  // A job or an upload ends when its next byte does not arrive for this long while the
  // server reads the call.
  absl::Duration payload_timeout = absl::Seconds(60);
  // A connection of this age gets no new calls, and a Multiply stream no new jobs. 0: never.
  absl::Duration max_connection_age = absl::Hours(24);
};

// One finished call.
struct RpcEnd {
  absl::string_view method;  // "Multiply"
  absl::StatusCode code;
  absl::Duration elapsed;
  absl::string_view caller = "";  // empty also where it is not known
};

// What a client has stalled until the server ended it: sending an answer, or payload.
enum class StalledOn : uint8_t { kSend, kPayload };
struct Stall {
  absl::string_view method;
  StalledOn on = StalledOn::kSend;
  std::string peer;  // "ipv4:127.0.0.1:40000"
  absl::Duration waited;
  size_t jobs = 0;               // that ended, of a stream that goes on
  bool drop_connection = false;  // cancelling the call was not enough
};

struct ServiceContext {
  Engine& engine;
  Benchmarks& benchmarks;
  LiveCalls& live_calls;
  CallerTraffic& traffic;
  const Identity& identity;
  RpcLimits limits;
  std::string version;
  std::string commit;
  absl::Time started;
  // Called from any thread; must be quick. Never null.
  std::function<void(const RpcEnd&)> on_end;
  std::function<void(const Stall&)> on_stall = [](const Stall&) {};
  // A call of this peer was let through: where it counts the bytes of the messages that it reads.
  std::function<std::shared_ptr<std::atomic<int64_t>>(const std::string& peer)> on_call = nullptr;
};

// OK, or RESOURCE_EXHAUSTED for a message above the limit. `what` names the message.
inline absl::Status CheckMessageBytes(absl::string_view what, size_t bytes,
                                      const RpcLimits& limits) {
  if (bytes <= limits.max_message_bytes) return absl::OkStatus();
  return BoundError({.bound = "max-message-bytes"},
                    absl::StrCat(what, ": a message of ", bytes, " bytes; this server takes up to ",
                                 limits.max_message_bytes, " (its flag --max-message-bytes)"));
}

}  // namespace gemmd
