// The limit on open files of this process, and which of the sockets that it handed to
// others are still open.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace gemmd {

// Raises the soft limit to the hard one, but at most to 65,536. That is enough for any
// number of connections that the server accepts, and not so many that a library that
// loops over all possible descriptors hangs.
void RaiseDescriptorLimit();

// The soft limit.
int DescriptorLimit();

// The number of connections that a limit of `descriptors` allows. A quarter of them, at
// least 128 and at most 1,024, is reserved for everything else: devices, libraries, logs,
// and /metrics with up to 64 connections of its own.
int ConnectionsFor(int descriptors);

// The inode of the file that `fd` stands for; 0 if it is not open. Tells a socket from a later one
// with the same number.
uint64_t InodeOf(int fd);
// Ends the connection of `fd` where that still has this inode: its owner sees that, and closes it.
// False where it has not.
bool ShutDownSocket(int fd, uint64_t inode);

// Descriptors of sockets that another owner closes without telling us. A socket's inode
// distinguishes it from a later one with the same number. Not thread-safe.
class GivenSockets {
 public:
  using Clock = std::chrono::steady_clock;

  // `fd` is open.
  void Add(int fd);
  // Returns how many are open, and forgets the others.
  size_t CountOpen();
  // How many of the last count were added before `time`.
  size_t AddedBefore(Clock::time_point time) const;
  // The last count plus those added since.
  size_t size() const { return sockets_.size(); }
  // Ends the connections of those that are open. Their owner sees that, and closes them.
  void ShutDownAll();
  // The same for the one of `peer`, as PeerName has it, and what it had sent is discarded. False
  // where there is none, or where it has ended.
  bool ShutDown(const std::string& peer);
  // Those with more than `bytes` that their owner has yet to read.
  struct Unread {
    std::string peer;
    int64_t bytes = 0;
    bool left = false;  // the other end is closed
  };
  std::vector<Unread> UnreadAbove(int64_t bytes) const;
  // What the other ends of TCP connections have sent, and have acknowledged.
  struct Traffic {
    std::string peer;
    int64_t received = 0;
    int64_t sent = 0;
  };
  std::vector<Traffic> TrafficOfAll() const;

 private:
  struct Given {
    uint64_t inode = 0;
    Clock::time_point added;
    std::string peer;
  };

  std::unordered_map<int, Given> sockets_;  // by descriptor
};

}  // namespace gemmd
