// Freed memory given back to the system.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>

namespace gemmd {

// Of all arenas: what was freed and not yet asked for again, whether it takes up memory or not.
size_t FreeHeapBytes();

// glibc keeps what was freed for the allocations to come: after a burst of large messages the
// process stays as large as it was at its worst, for good. This gives the free pages back where
// more is free than when it last did so. Not thread-safe: one thread calls Look.
class HeapTrimmer {
 public:
  using Clock = std::chrono::steady_clock;

  // Less is left to the allocator: one that is steadily at work keeps its caches.
  static constexpr size_t kGrowth = size_t{32} << 20;
  // Between two looks: the allocator's locks are held while it gives back, for some
  // milliseconds each 100 MB.
  static constexpr Clock::duration kPeriod = std::chrono::seconds(5);

  explicit HeapTrimmer(std::function<size_t()> free_bytes = &FreeHeapBytes)
      : free_bytes_(std::move(free_bytes)), least_(free_bytes_()) {}

  // True where it gave memory back. To be called often: it costs nothing before its time.
  bool Look(Clock::time_point now = Clock::now());

 private:
  const std::function<size_t()> free_bytes_;
  Clock::time_point next_look_ = Clock::time_point::min();
  size_t least_;  // that was free since the last time
};

}  // namespace gemmd
