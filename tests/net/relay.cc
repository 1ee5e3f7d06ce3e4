#include "tests/net/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace gemmd {
namespace {

constexpr int kPollMilliseconds = 20;

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

Relay::Relay(const std::string& server) {
  const int port = std::stoi(server.substr(server.rfind(':') + 1));
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in own = Loopback(0);
  socklen_t length = sizeof(own);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&own), length) == 0 &&
      listen(listener_, 64) == 0 &&
      getsockname(listener_, reinterpret_cast<sockaddr*>(&own), &length) == 0) {
    address_ = "127.0.0.1:" + std::to_string(ntohs(own.sin_port));
  }
  acceptor_ = std::thread([this, port] { Accept(port); });
}

Relay::~Relay() {
  stopped_ = true;
  acceptor_.join();
  for (std::thread& passer : passers_) passer.join();
  for (const int socket : sockets_) close(socket);
  close(listener_);
}

void Relay::Accept(int port) {
  while (!stopped_) {
    pollfd ready = {.fd = listener_, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kPollMilliseconds) != 1) continue;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(port);
    const std::lock_guard lock(mutex_);
    sockets_.insert(sockets_.end(), {client, server});
    if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      continue;
    }
    passers_.emplace_back([this, client, server] { Pass(client, server); });
    passers_.emplace_back([this, client, server] { Pass(server, client); });
  }
}

void Relay::Pass(int from, int to) {
  std::array<char, 64 << 10> bytes;
  while (!stopped_) {
    pollfd ready = {.fd = from, .events = POLLIN, .revents = 0};
    if (frozen_ || poll(&ready, 1, kPollMilliseconds) != 1) {
      if (frozen_) usleep(kPollMilliseconds * 1000);
      continue;
    }
    const ssize_t got = recv(from, bytes.data(), bytes.size(), 0);
    if (got <= 0) break;
    for (ssize_t sent = 0; sent < got && !frozen_;) {
      const ssize_t n =
          send(to, bytes.data() + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
      if (n <= 0) return;
      sent += n;
    }
  }
  if (!frozen_) (void)shutdown(to, SHUT_WR);
}

}  // namespace gemmd
