#include "server/rpc/watch/drop_connection.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace gemmd {
namespace {

// The peer of a connected socket, written as gRPC writes it.
std::optional<std::string> PeerOf(int fd) {
  sockaddr_storage storage;
  socklen_t size = sizeof(storage);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return std::nullopt;
  std::array<char, INET6_ADDRSTRLEN> text;
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return absl::StrCat("ipv4:", text.data(), ":", ntohs(v4.sin_port));
  }
  if (storage.ss_family != AF_INET6) return std::nullopt;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text.data(), text.size());
    return absl::StrCat("ipv4:", text.data(), ":", ntohs(v6.sin6_port));
  }
  inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  return absl::StrCat("ipv6:%5B", text.data(), "%5D:", ntohs(v6.sin6_port));
}

// Of several calls that are to drop their connection the first one does: gRPC keeps its socket for
// a while after.
bool IsOpen(int fd) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  return info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT;
}

// What has come is read after a shutdown, too: the system discards it instead.
void DiscardInput(int fd) {
  constexpr size_t kAtOnce = 1 << 20;
  while (recv(fd, nullptr, kAtOnce, MSG_TRUNC | MSG_DONTWAIT) > 0) {
  }
}

}  // namespace

bool DropConnection(const std::string& peer) {
  if (!absl::StartsWith(peer, "ip")) return false;
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return false;
  bool dropped = false;
  while (const dirent* entry = readdir(folder)) {
    int number;
    if (!absl::SimpleAtoi(entry->d_name, &number)) continue;
    // A descriptor of its own: gRPC may close the other at any time, and the number
    // then stands for something else.
    const int fd = dup(number);
    if (fd < 0) continue;
    if (PeerOf(fd) == peer && IsOpen(fd)) dropped = shutdown(fd, SHUT_RDWR) == 0;
    if (dropped) DiscardInput(fd);
    close(fd);
    if (dropped) break;
  }
  closedir(folder);
  return dropped;
}

}  // namespace gemmd
