#include "server/listening/grpc_listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/floods/transports.h"

namespace gemmd {
namespace {

std::vector<int> Numbers(const std::vector<Listening>& listening) {
  std::vector<int> numbers;
  for (const Listening& one : listening) {
    for (const UniqueFd& fd : one.fds) numbers.push_back(fd.get());
  }
  return numbers;
}

bool IsTcp(const UniqueFd& connection) {
  int domain = AF_UNSPEC;
  socklen_t size = sizeof(domain);
  return getsockopt(connection.get(), SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
         domain != AF_UNIX;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcListener>> GrpcListener::Open(
    absl::string_view flag, absl::Span<const Address> addresses, AcceptorLimits limits,
    absl::Duration user_timeout, int calls_per_caller, OnExcess on_excess) {
  std::vector<Listening> all;
  for (const Address& address : addresses) {
    absl::StatusOr<Listening> listening = Listen(flag, address);
    if (!listening.ok()) return listening.status();
    all.push_back(*std::move(listening));
  }
  return std::unique_ptr<GrpcListener>(new GrpcListener(std::move(all), limits, user_timeout,
                                                        calls_per_caller, std::move(on_excess)));
}

GrpcListener::GrpcListener(std::vector<Listening> listening, AcceptorLimits limits,
                           absl::Duration user_timeout, int calls_per_caller, OnExcess on_excess)
    : listening_(std::move(listening)),
      user_timeout_(user_timeout),
      calls_per_caller_(calls_per_caller),
      calls_(calls_per_caller, Gates(std::move(on_excess))),
      acceptor_(Numbers(listening_), limits) {}

CallBacklog::Gates GrpcListener::Gates(OnExcess on_excess) {
  return {.opened = [this](intptr_t after) { return TransportsAfter(server_, after); },
          .calls = &CallsOfTransport,
          .unread = [this](int64_t bytes) { return acceptor_.UnreadAbove(bytes); },
          .close = [this](const std::string& peer) { return acceptor_.ShutDown(peer); },
          .on_excess = std::move(on_excess)};
}

FrameFloods::Gates GrpcListener::GatesOfFloods() {
  return {.traffic = [this] { return acceptor_.Traffic(); },
          .calls = [this](const std::string& peer) { return calls_.CallsOf(peer); },
          .close =
              [this](const std::string& peer) {
                calls_.Refuse(peer, FrameFloods::kRefuseFor);
                acceptor_.ShutDown(peer);
              }};
}

ConnectionStats GrpcListener::Stats() {
  ConnectionStats stats = acceptor_.Stats();
  if (server_ != 0) calls_.Look();
  stats.calls = calls_.calls();
  stats.calls_limit = calls_per_caller_;
  return stats;
}

std::string GrpcListener::text() const {
  return absl::StrJoin(listening_, ",", [](std::string* out, const Listening& one) {
    absl::StrAppend(out, one.text());
  });
}

void GrpcListener::AddTo(grpc::ServerBuilder& builder,
                         std::shared_ptr<grpc::ServerCredentials> credentials) {
  grpc_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      std::move(credentials));
}

void GrpcListener::Start() {
  server_ = NewestServer();
  calls_.Start();
  acceptor_.Start([this](UniqueFd connection) { Take(std::move(connection)); },
                  [server = server_.load()] { return CountTransports(server); },
                  [this](const std::string& peer) { return calls_.MayServe(peer); });
}

void GrpcListener::Take(UniqueFd connection) {
  if (IsTcp(connection)) {
    // gRPC's own listener sets this, too.
    const int on = 1;
    setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const auto milliseconds = static_cast<unsigned>(absl::ToInt64Milliseconds(user_timeout_));
    setsockopt(connection.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds,
               sizeof(milliseconds));
  }
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.fd = connection.release();
  grpc_->HandleNewConnection(&parameters);
}

}  // namespace gemmd
