// Ends calls whose client does not read its answer.
//
// gRPC cannot interrupt a write, so the call is cancelled. A cancelled call releases the data that
// HTTP/2's flow control holds. The connection may have taken up to about 1 MiB of it. The blocks in
// which that lies are released when the peer's TCP acknowledges it, or when the connection is
// closed. So the connection is closed if the cancelled call is still not gone after the same time
// again.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpc/grpc.h"
#include "grpcpp/server_context.h"
#include "server/base/serving_clock.h"
#include "server/rpc/context/service_context.h"

namespace gemmd {

// How long a call has waited for its client to send, compared with --payload-timeout. Runs while a
// read of the call is under way: while the server reads no further, for whatever reason, what has
// yet to come is not the client's delay. Guarded by its call's lock.
class PayloadClock {
 public:
  void Start() {
    since_ = ServingClock::Now();
    runs_ = true;
  }
  void Stop() {
    run_ = Elapsed();
    runs_ = false;
  }
  absl::Duration Elapsed() const { return runs_ ? run_ + (ServingClock::Now() - since_) : run_; }

 private:
  absl::Duration run_;
  absl::Time since_;
  bool runs_ = false;
};

// How long a client may keep a call waiting.
struct Patience {
  absl::Time now;          // of the ServingClock
  absl::Duration send;     // for it to take a message
  absl::Duration payload;  // for the next byte of what it promised
};

// A call that its guard ends. The destructor ends it: destroy this with no lock held,
// because gRPC may then call the call's reactor.
class CallEnding {
 public:
  CallEnding() = default;
  // Takes a reference on `call`. `why` is the call's final status.
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

// One for each call, guarded by the call's own lock.
class CallGuard {
 public:
  // `method` lives as long as the process.
  CallGuard(ServiceContext& service, grpc::CallbackServerContext* call, absl::string_view method)
      : service_(service), call_(call), method_(method) {}
  CallGuard(const CallGuard&) = delete;

  // A message, or the call's final status, was handed to gRPC.
  void SendBegins() { sending_since_ = ServingClock::Now(); }
  // gRPC has taken it.
  void SendEnds() { sending_since_.reset(); }
  // gRPC is done with the call; it can no longer be ended.
  void CallIsDone() { call_ = nullptr; }

  // Why the guard has ended the call; OK if it has not.
  const absl::Status& why() const { return why_; }

  // Ends the call if its client has not taken a message in time, and the connection if
  // the call is then still not gone.
  [[nodiscard]] CallEnding CheckSend(const Patience& patience);

  // Describes a stall of the client, for log and metrics.
  Stall DescribeStall(StalledOn on, absl::Duration waited) const;

 private:
  ServiceContext& service_;
  grpc::CallbackServerContext* call_;
  const absl::string_view method_;
  std::optional<absl::Time> sending_since_;
  absl::Status why_;
  std::string peer_;  // as it was when the call was ended: afterwards gRPC does not know
  bool dropped_ = false;
};

}  // namespace gemmd
