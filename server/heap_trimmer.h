// Freed memory given back to the system.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>

namespace gemmd {

// Of this process, in bytes; 0 where /proc does not tell.
size_t ResidentBytes();

// glibc keeps what was freed for the allocations to come: after a burst of large messages the
// process stays as large as it was at its worst, for good. This gives the free pages back where
// the process has grown since it last did so. Not thread-safe: one thread calls Look.
class HeapTrimmer {
 public:
  using Clock = std::chrono::steady_clock;

  // A process that has grown by less is left alone, and so are the allocator's caches of one
  // that is steadily at work.
  static constexpr size_t kGrowth = size_t{32} << 20;
  // Between two looks: the allocator's locks are held while it gives back, for some
  // milliseconds each 100 MB.
  static constexpr Clock::duration kPeriod = std::chrono::seconds(5);

  explicit HeapTrimmer(std::function<size_t()> resident_bytes = &ResidentBytes)
      : resident_bytes_(std::move(resident_bytes)), least_(resident_bytes_()) {}

  // True where it gave memory back. To be called often: it costs nothing before its time.
  bool Look(Clock::time_point now = Clock::now());

 private:
  const std::function<size_t()> resident_bytes_;
  Clock::time_point next_look_ = Clock::time_point::min();
  size_t least_;  // resident bytes since the last time, or less
};

}  // namespace gemmd
