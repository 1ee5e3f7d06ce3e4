// Ends calls whose client does not take what is sent to it.
//
// gRPC cannot break off a write: the call has to be cancelled. That gives back what
// HTTP/2's flow control holds. What the connection has already taken, up to about
// 1 MiB and the blocks that it lies in, comes back when the peer's TCP has acknowledged
// it, or when the connection ends: so that is ended where the cancelled call has still
// not gone after as long again.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpc/grpc.h"
#include "grpcpp/server_context.h"
#include "server/base/clock.h"
#include "server/rpc/service_context.h"

namespace gemmd {

// How long a client may keep a call waiting.
struct Patience {
  absl::Time now;          // as SteadyNow() tells it
  absl::Duration send;     // for it to take a message
  absl::Duration payload;  // for the next byte of what it promised
};

// The call that a guard ends, when this is destroyed: with no lock held, as gRPC may
// call the call's reactor from there.
class CallEnding {
 public:
  CallEnding() = default;
  // Takes a reference on `call`. `why` is what the call ends with.
  CallEnding(ServiceContext& service, grpc_call* call, Stall stall, const absl::Status& why);
  CallEnding(CallEnding&& other) noexcept;
  CallEnding& operator=(CallEnding&& other) = delete;
  ~CallEnding();

 private:
  ServiceContext* service_ = nullptr;
  grpc_call* call_ = nullptr;
  Stall stall_;
  absl::Status why_;
};

// One a call, guarded by the call's own lock.
class CallGuard {
 public:
  // `method` is a literal.
  CallGuard(ServiceContext& service, grpc::CallbackServerContext* call, const char* method)
      : service_(service), call_(call), method_(method) {}
  CallGuard(const CallGuard&) = delete;

  // A message, or the call's end, is handed to gRPC.
  void SendBegins() { sending_since_ = SteadyNow(); }
  // gRPC has taken it.
  void SendEnds() { sending_since_.reset(); }
  // gRPC is done with the call: from now on it cannot be ended.
  void CallIsDone() { call_ = nullptr; }

  // Why the guard has ended the call; OK where it has not.
  const absl::Status& why() const { return why_; }

  // Ends the call where its client has not taken what was sent in time, and the
  // connection where the call then stays.
  [[nodiscard]] CallEnding CheckSend(const Patience& patience);

  // What else the client has kept waiting, for log and metrics.
  Stall DescribeStall(StalledOn on, absl::Duration waited) const;

 private:
  ServiceContext& service_;
  grpc::CallbackServerContext* call_;
  const char* const method_;
  std::optional<absl::Time> sending_since_;
  absl::Status why_;
  std::string peer_;  // as it was when the call was ended: afterwards gRPC does not know
  bool dropped_ = false;
};

}  // namespace gemmd
