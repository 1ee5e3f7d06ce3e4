// The allocator of this process, and the return of freed memory to the system.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>

namespace gemmd {

// Bytes in use by all threads. Zero if the allocator does not tell, as under a sanitizer.
size_t HeapBytesInUse();
// Freed bytes that are kept for later allocations.
size_t FreeHeapBytes();

// Returns what can be returned to the system. Holds the allocator's locks meanwhile.
void GiveBackFreeHeap();

struct MemoryUse {
  size_t free_bytes = 0;      // kept by the allocator; with glibc's, resident or not
  size_t resident_bytes = 0;  // of the process
};
MemoryUse ThisProcessMemory();

// An allocator keeps freed memory for later allocations, so after a burst of large messages
// the process would stay at its peak size. This returns the free pages when more is free than
// the last time, or when the process has grown and as much is free: a burst between two checks
// leaves no more free than before, but resident again. And it does so again as long as
// something comes of it: what others freed meanwhile is free, and no growth since.
// Not thread-safe: one thread calls Look.
class HeapTrimmer {
 public:
  using Clock = std::chrono::steady_clock;

  // Growth below this is ignored, so that an allocator under steady load keeps its caches.
  static constexpr size_t kGrowth = size_t{32} << 20;
  // The time between two checks. Trimming holds the allocator's locks, some milliseconds per
  // 100 MB.
  static constexpr Clock::duration kPeriod = std::chrono::seconds(5);

  explicit HeapTrimmer(std::function<MemoryUse()> use = &ThisProcessMemory)
      : use_(std::move(use)), least_(use_()) {}

  // Returns whether it returned memory. May be called often: it does nothing before kPeriod.
  bool Look(Clock::time_point now = Clock::now());

 private:
  const std::function<MemoryUse()> use_;
  Clock::time_point next_look_ = Clock::time_point::min();
  MemoryUse least_;          // of each since the last time
  bool unfinished_ = false;  // something came of the last time
};

}  // namespace gemmd
