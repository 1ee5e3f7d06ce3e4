// A call that the server makes to itself, to see whether calls are served.
#pragma once

#include <memory>

#include "absl/time/time.h"
#include "grpcpp/server.h"

namespace gemmd {

// Calls grpc.health.v1 over a socket pair: through all that a client's call goes through but the
// listening socket, TLS and the check of who calls. It needs no thread of its own. Time is counted
// in looks, so that a process that stood still does not blame the server.
// One thread at a time.
class OwnCall {
 public:
  // A call begins so many looks after the last one was answered, and may take as many.
  static constexpr int kLooksBetween = 20;
  static constexpr int kLooksToAnswer = 20;

  // `server` must serve until the last Wait or Look.
  explicit OwnCall(grpc::Server& server) : server_(server) {}

  // Makes a call. Returns whether it was answered within `timeout`.
  bool Wait(absl::Duration timeout);
  // Looks at the call under way, or begins the next one. Returns whether calls are answered. Call
  // this a few times a second.
  bool Look();

 private:
  struct Call;

  void Begin();

  grpc::Server& server_;
  std::shared_ptr<Call> call_;  // null: none is under way
  int looks_ = 0;               // since the last answer
};

}  // namespace gemmd
