#include "tests/net/loopback.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace gemmd {
namespace {

bool Readable(int fd, absl::Duration timeout) {
  pollfd readable = {.fd = fd, .events = POLLIN};
  return poll(&readable, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout))) == 1;
}

}  // namespace

UniqueFd ConnectTo(int port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(port));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) fd = UniqueFd();
  return fd;
}

UniqueFd ConnectTo(const std::string& host_and_port) {
  return ConnectTo(std::atoi(host_and_port.c_str() + host_and_port.rfind(':') + 1));
}

bool SendAll(const UniqueFd& connection, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::string ReceiveAll(const UniqueFd& connection, absl::Duration timeout) {
  std::string text;
  char buffer[4096];
  while (Readable(connection.get(), timeout)) {
    const ssize_t got = recv(connection.get(), buffer, sizeof(buffer), 0);
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

bool ClosedByPeer(const UniqueFd& connection, absl::Duration timeout) {
  char byte;
  while (Readable(connection.get(), timeout)) {
    if (recv(connection.get(), &byte, 1, 0) <= 0) return true;
  }
  return false;
}

std::string HttpGet(const std::string& host_and_port, const std::string& path) {
  const UniqueFd connection = ConnectTo(host_and_port);
  if (!connection) return "";
  if (!SendAll(connection, absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n\r\n"))) return "";
  return ReceiveAll(connection);
}

}  // namespace gemmd
