#include "server/net/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace gemmd {
namespace {

constexpr rlim_t kMostDescriptors = 65'536;

// 0 where `fd` is not open.
uint64_t InodeOf(int fd) {
  // Not fstat: its owner may close the descriptor meanwhile, which is as it
  // should be here and a data race to the thread sanitizer.
  struct statx file {};
  if (statx(fd, "", AT_EMPTY_PATH, STATX_INO, &file) == 0) return file.stx_ino;
  struct stat classic {};  // where a sandbox knows no statx
  return errno == EPERM && fstat(fd, &classic) == 0 ? classic.st_ino : 0;
}

}  // namespace

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

void GivenSockets::Add(int fd) { inodes_[fd] = InodeOf(fd); }

size_t GivenSockets::CountOpen() {
  for (auto it = inodes_.begin(); it != inodes_.end();) {
    const uint64_t inode = InodeOf(it->first);
    it = inode != 0 && inode == it->second ? std::next(it) : inodes_.erase(it);
  }
  return inodes_.size();
}

}  // namespace gemmd
