#include "server/grpc_listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>
#include <vector>

namespace gemmd {
namespace {

std::vector<int> Numbers(const std::vector<UniqueFd>& fds) {
  std::vector<int> numbers;
  for (const UniqueFd& fd : fds) numbers.push_back(fd.get());
  return numbers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcListener>> GrpcListener::Open(absl::string_view flag,
                                                                 const Address& address,
                                                                 int max_connections,
                                                                 absl::Duration user_timeout) {
  absl::StatusOr<Listening> listening = Listen(flag, address);
  if (!listening.ok()) return listening.status();
  return std::unique_ptr<GrpcListener>(
      new GrpcListener(*std::move(listening), max_connections, user_timeout));
}

GrpcListener::GrpcListener(Listening listening, int max_connections, absl::Duration user_timeout)
    : listening_(std::move(listening)),
      user_timeout_(user_timeout),
      acceptor_(Numbers(listening_.fds), max_connections) {}

void GrpcListener::AddTo(grpc::ServerBuilder& builder,
                         std::shared_ptr<grpc::ServerCredentials> credentials) {
  grpc_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      std::move(credentials));
}

void GrpcListener::Start() {
  acceptor_.Start([this](UniqueFd connection) { Take(std::move(connection)); });
}

void GrpcListener::Take(UniqueFd connection) {
  if (!listening_.address.is_unix()) {
    // What gRPC's own listener sets.
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
