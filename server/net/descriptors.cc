#include "server/net/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "server/net/listen_socket.h"

namespace gemmd {
namespace {

constexpr rlim_t kMostDescriptors = 65'536;

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

void GivenSockets::Add(int fd) { sockets_[fd] = {.inode = InodeOf(fd), .added = Clock::now()}; }

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

}  // namespace gemmd
