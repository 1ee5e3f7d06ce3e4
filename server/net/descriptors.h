// How many files this process may open, and which of those it gave away are
// still open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace gemmd {

// Raises the soft limit to the hard one, or to 65,536 where that is more: enough
// for any number of connections that the server takes, and not so many that a
// library that walks through all possible descriptors hangs.
void RaiseDescriptorLimit();

// The soft limit.
int DescriptorLimit();

// The connections that `descriptors` leave room for. A quarter, but 128 to
// 1,024, is for everything else: devices, libraries, logs, and /metrics, which
// has up to 64 connections of its own.
int ConnectionsFor(int descriptors);

// Descriptors of sockets that somebody else owns now, who closes them and tells
// nobody. A socket's inode tells it from a later one of the same number. Not
// thread-safe.
class GivenSockets {
 public:
  // `fd` is open.
  void Add(int fd);
  // How many are open. Forgets the others.
  size_t CountOpen();
  // The last count, and those added since.
  size_t size() const { return inodes_.size(); }

 private:
  std::unordered_map<int, uint64_t> inodes_;  // by descriptor
};

}  // namespace gemmd
