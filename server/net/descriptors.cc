#include "server/net/descriptors.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>

#include "server/base/peer_name.h"
#include "server/net/listen_socket.h"

namespace gemmd {
namespace {

constexpr rlim_t kMostDescriptors = 65'536;
constexpr size_t kDiscardedAtOnce = 1 << 20;

}  // namespace

uint64_t InodeOf(int fd) {
  // Not fstat: its owner may close the descriptor meanwhile, which is as it
  // should be here and a data race to the thread sanitizer.
  struct statx file {};
  if (statx(fd, "", AT_EMPTY_PATH, STATX_INO, &file) == 0) return file.stx_ino;
  struct stat classic {};  // where a sandbox knows no statx
  return errno == EPERM && fstat(fd, &classic) == 0 ? classic.st_ino : 0;
}

bool ShutDownSocket(int fd, uint64_t inode) {
  // A descriptor of its own: the owner may close the other at any time, and the number
  // then stands for something else.
  const UniqueFd own(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  return own && InodeOf(own.get()) == inode && shutdown(own.get(), SHUT_RDWR) == 0;
}

void RaiseDescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kMostDescriptors));
  setrlimit(RLIMIT_NOFILE, &limit);
}

int DescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;  // what Linux starts with
  return static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 30));
}

int ConnectionsFor(int descriptors) {
  return std::max(1, descriptors - std::clamp(descriptors / 4, 128, 1024));
}

void GivenSockets::Add(int fd) {
  sockets_[fd] = {.inode = InodeOf(fd), .added = Clock::now(), .peer = PeerName(fd)};
}

size_t GivenSockets::CountOpen() {
  for (auto it = sockets_.begin(); it != sockets_.end();) {
    const uint64_t inode = InodeOf(it->first);
    it = inode != 0 && inode == it->second.inode ? std::next(it) : sockets_.erase(it);
  }
  return sockets_.size();
}

size_t GivenSockets::AddedBefore(Clock::time_point time) const {
  return static_cast<size_t>(
      std::count_if(sockets_.begin(), sockets_.end(),
                    [time](const auto& socket) { return socket.second.added < time; }));
}

void GivenSockets::ShutDownAll() {
  for (const auto& [fd, given] : sockets_) ShutDownSocket(fd, given.inode);
}

bool GivenSockets::ShutDown(const std::string& peer) {
  if (peer.empty()) return false;
  bool ended = false;
  for (const auto& [fd, given] : sockets_) {
    if (given.peer != peer || !ShutDownSocket(fd, given.inode)) continue;
    ended = true;
    // Its owner would read on what has come.
    const UniqueFd own(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    while (own && InodeOf(own.get()) == given.inode &&
           recv(own.get(), nullptr, kDiscardedAtOnce, MSG_TRUNC | MSG_DONTWAIT) > 0) {
    }
  }
  return ended;
}

std::vector<GivenSockets::Unread> GivenSockets::UnreadAbove(int64_t bytes) const {
  std::vector<Unread> all;
  for (const auto& [fd, given] : sockets_) {
    int unread = 0;
    // The number may stand for another file by now. That does no harm, and is seen below.
    if (ioctl(fd, FIONREAD, &unread) != 0 || unread <= bytes) continue;
    const UniqueFd own(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!own || InodeOf(own.get()) != given.inode) continue;
    pollfd end{.fd = own.get(), .events = POLLRDHUP, .revents = 0};
    all.push_back({.peer = given.peer, .bytes = unread, .left = poll(&end, 1, 0) > 0});
  }
  return all;
}

std::vector<GivenSockets::Traffic> GivenSockets::TrafficOfAll() const {
  std::vector<Traffic> all;
  for (const auto& [fd, given] : sockets_) {
    if (given.peer.empty()) continue;
    // Maybe of whatever has the number now: then it tells nothing for a moment.
    tcp_info info{};
    socklen_t size = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        size < offsetof(tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received)) {
      continue;
    }
    all.push_back({.peer = given.peer,
                   .received = static_cast<int64_t>(info.tcpi_bytes_received),
                   .sent = static_cast<int64_t>(info.tcpi_bytes_acked)});
  }
  return all;
}

}  // namespace gemmd
