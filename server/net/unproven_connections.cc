#include "server/net/unproven_connections.h"

#include <algorithm>
#include <iterator>

#include "server/net/descriptors.h"

namespace gemmd {
namespace {

// Each costs some system calls, and who accepts connections waits.
constexpr size_t kAtOnce = 64;

}  // namespace

void UnprovenConnections::Add(const std::string& peer, int fd, Clock::time_point now) {
  if (peer.empty()) return;
  MutexLock lock(mutex_);
  // One of the same name is gone: the system has given its port away again.
  if (const auto before = by_peer_.find(peer); before != by_peer_.end()) Erase(before->second);
  oldest_first_.push_back({.peer = peer, .fd = fd, .inode = InodeOf(fd), .added = now});
  by_peer_.emplace(peer, std::prev(oldest_first_.end()));
  if (oldest_first_.size() > forget_at_) ForgetClosed();
}

void UnprovenConnections::Prove(const std::string& peer) {
  MutexLock lock(mutex_);
  if (const auto found = by_peer_.find(peer); found != by_peer_.end()) Erase(found->second);
}

size_t UnprovenConnections::EndOldest(Clock::time_point time) {
  MutexLock lock(mutex_);
  size_t ended = 0;
  while (ended < kAtOnce && !oldest_first_.empty() && oldest_first_.front().added < time) {
    const Unproven& oldest = oldest_first_.front();
    if (ShutDownSocket(oldest.fd, oldest.inode)) ++ended;
    Erase(oldest_first_.begin());
  }
  return ended;
}

size_t UnprovenConnections::size() const {
  MutexLock lock(mutex_);
  return oldest_first_.size();
}

UnprovenConnections::Connections::iterator UnprovenConnections::Erase(Connections::iterator one) {
  by_peer_.erase(one->peer);
  return oldest_first_.erase(one);
}

void UnprovenConnections::ForgetClosed() {
  for (auto it = oldest_first_.begin(); it != oldest_first_.end();) {
    it = InodeOf(it->fd) == it->inode ? std::next(it) : Erase(it);
  }
  forget_at_ = std::max<size_t>(1024, 2 * oldest_first_.size());
}

}  // namespace gemmd
