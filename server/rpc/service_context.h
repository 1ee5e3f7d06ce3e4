// What every RPC of the service works with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/benchmark/benchmarks.h"
#include "server/engine/bounds/options.h"
#include "server/engine/engine.h"
#include "server/rpc/live_calls.h"

namespace gemmd {

struct RpcLimits {
  // Of one message, either way.
  size_t max_message_bytes = 8 * kMiB;
  int max_jobs_per_stream = 1024;
  // Received payload of a call that the engine has not taken yet; past it the
  // call's stream is not read, and HTTP/2 flow control stops the sender.
  size_t read_window_bytes = 8 * kMiB;
  // A call whose client takes nothing of what is sent for this long is cancelled.
  absl::Duration send_timeout = absl::Seconds(30);
  // A job, or an upload, whose next byte does not come for this long, while the
  // server reads the call, ends.
  absl::Duration payload_timeout = absl::Seconds(60);
};

// One finished call.
struct RpcEnd {
  absl::string_view method;  // "Multiply"
  absl::StatusCode code;
  absl::Duration elapsed;
};

// What a client has kept waiting until the server gave it up.
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
  RpcLimits limits;
  std::string version;
  std::string commit;
  absl::Time started;
  // From any thread; must be quick. Never null.
  std::function<void(const RpcEnd&)> on_end;
  std::function<void(const Stall&)> on_stall = [](const Stall&) {};
};

// OK, or RESOURCE_EXHAUSTED for a message over the limit. `what` names it.
inline absl::Status CheckMessageBytes(absl::string_view what, size_t bytes,
                                      const RpcLimits& limits) {
  if (bytes <= limits.max_message_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(what, ": a message of ", bytes, " bytes; this server takes up to ",
                   limits.max_message_bytes, " (its flag --max-message-bytes)"));
}

}  // namespace gemmd
