#include "server/rpc/watch/drop_connection.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "server/base/peer_name.h"

namespace gemmd {
namespace {

// If several calls are to drop their connection, the first one does: gRPC keeps its socket for a
// while after.
bool IsOpen(int fd) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  return info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT;
}

// gRPC would read received bytes even after a shutdown. So the system discards them.
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
    if (PeerName(fd) == peer && IsOpen(fd)) dropped = shutdown(fd, SHUT_RDWR) == 0;
    if (dropped) DiscardInput(fd);
    close(fd);
    if (dropped) break;
  }
  closedir(folder);
  return dropped;
}

}  // namespace gemmd
