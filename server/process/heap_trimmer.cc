#include "server/process/heap_trimmer.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "server/process/heap.h"

namespace gemmd {

MemoryUse ThisProcessMemory() {
  std::ifstream statm("/proc/self/statm");
  size_t pages = 0;
  size_t resident_pages = 0;
  statm >> pages >> resident_pages;
  return {.free_bytes = FreeHeapBytes(),
          .resident_bytes = resident_pages * static_cast<size_t>(sysconf(_SC_PAGESIZE))};
}

bool HeapTrimmer::Look(Clock::time_point now) {
  if (now < next_look_) return false;
  next_look_ = now + kPeriod;
  const MemoryUse use = use_();
  const bool more_free = use.free_bytes >= least_.free_bytes + kGrowth;
  const bool grown = use.resident_bytes >= least_.resident_bytes + kGrowth;
  const bool much_free = use.free_bytes >= kGrowth;
  if (!more_free && !(grown && much_free) && !(unfinished_ && much_free)) {
    unfinished_ = false;
    least_.free_bytes = std::min(least_.free_bytes, use.free_bytes);
    least_.resident_bytes = std::min(least_.resident_bytes, use.resident_bytes);
    return false;
  }
  GiveBackFreeHeap();
  least_ = use_();
  unfinished_ = use.free_bytes >= least_.free_bytes + kGrowth ||
                use.resident_bytes >= least_.resident_bytes + kGrowth;
  return true;
}

}  // namespace gemmd
