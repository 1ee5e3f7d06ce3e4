#include "server/heap_trimmer.h"

#include <malloc.h>

#include <algorithm>

namespace gemmd {

size_t FreeHeapBytes() { return mallinfo2().fordblks; }

bool HeapTrimmer::Look(Clock::time_point now) {
  if (now < next_look_) return false;
  next_look_ = now + kPeriod;
  const size_t free_bytes = free_bytes_();
  if (free_bytes < least_ + kGrowth) {
    least_ = std::min(least_, free_bytes);
    return false;
  }
  malloc_trim(0);
  least_ = free_bytes_();
  return true;
}

}  // namespace gemmd
