// Connections whose clients have not shown yet who they are.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>

#include "server/base/mutex.h"

namespace gemmd {

// Thread-safe. Knows the connections by their peers, as PeerName has them.
class UnprovenConnections {
 public:
  using Clock = std::chrono::steady_clock;

  // A connection was accepted; `fd` is open. One without a name is not kept.
  void Add(const std::string& peer, int fd, Clock::time_point now);
  // Its client has shown who it is.
  void Prove(const std::string& peer);
  // Ends those that were added before `time`, the oldest first, and not all at once. Returns how
  // many: their owner sees it, and closes them.
  size_t EndOldest(Clock::time_point time);

  size_t size() const;

 private:
  struct Unproven {
    std::string peer;
    int fd = -1;
    uint64_t inode = 0;
    Clock::time_point added;
  };
  using Connections = std::list<Unproven>;

  Connections::iterator Erase(Connections::iterator one) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  Connections oldest_first_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Connections::iterator> by_peer_ ABSL_GUARDED_BY(mutex_);
  size_t forget_at_ ABSL_GUARDED_BY(mutex_) = 1024;  // connections
};

}  // namespace gemmd
