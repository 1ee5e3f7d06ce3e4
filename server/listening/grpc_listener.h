// Listens for a gRPC server.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "server/floods/call_backlog.h"
#include "server/floods/frame_floods.h"
#include "server/net/acceptor.h"
#include "server/net/listen_socket.h"

namespace gemmd {

// gRPC 1.51 abandons a listening socket for good when accept4 fails, as it does when
// descriptors run out, and it has no bound on connections. So connections are accepted
// here, below a bound, and handed to gRPC, which serves them as its own. It has no bound on calls
// that it has read and not destroyed either: CallBacklog.
//
// Call order: Open, AddTo, BuildAndStart of the builder, Start; Stop before the
// server's Shutdown.
class GrpcListener {
 public:
  using OnExcess = std::function<void(const TooManyCalls&)>;

  // From here on the system accepts connections on all addresses, and they wait. There is at least
  // one address. `flag` and errors as in Listen. `limits` are of the connections of all addresses
  // together. `user_timeout`: a connection is closed when sent data is not acknowledged for this
  // long (TCP_USER_TIMEOUT). `calls_per_caller` and `on_excess` as in CallBacklog.
  static absl::StatusOr<std::unique_ptr<GrpcListener>> Open(
      absl::string_view flag, absl::Span<const Address> addresses, AcceptorLimits limits,
      absl::Duration user_timeout, int calls_per_caller, OnExcess on_excess);

  void AddTo(grpc::ServerBuilder& builder, std::shared_ptr<grpc::ServerCredentials> credentials);
  // The server was started just now, and no other one since.
  void Start();
  void Stop() {
    acceptor_.Stop();
    calls_.Stop();
  }
  // Ends every open connection, also one that takes nothing: gRPC closes such a one only when
  // its last write has ended.
  void ShutDownConnections() { acceptor_.ShutDownConnections(); }

  // The first, with the actual port.
  const Address& address() const { return listening_.front().address; }
  // All of them, with commas between them.
  std::string text() const;
  // Not OK once connections are no longer accepted.
  absl::Status Health() const { return acceptor_.Health(); }
  ConnectionStats Stats();
  int64_t Refused() const { return acceptor_.Refused(); }
  // The client of this connection, as ServerContext::peer() names it, has shown who it is.
  void Prove(const std::string& peer) { acceptor_.Prove(peer); }
  // Told of every call.
  CallBacklog& calls() { return calls_; }
  // The gates of FrameFloods that this listener has.
  FrameFloods::Gates GatesOfFloods();

 private:
  GrpcListener(std::vector<Listening> listening, AcceptorLimits limits, absl::Duration user_timeout,
               int calls_per_caller, OnExcess on_excess);

  CallBacklog::Gates Gates(OnExcess on_excess);
  void Take(UniqueFd connection);

  const std::vector<Listening> listening_;  // one for each address
  const absl::Duration user_timeout_;
  const int calls_per_caller_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> grpc_;
  std::atomic<intptr_t> server_{0};  // of channelz; 0 until Start
  CallBacklog calls_;
  Acceptor acceptor_;  // last: calls Take until it goes
};

}  // namespace gemmd
