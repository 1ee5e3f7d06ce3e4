#include "server/heap_trimmer.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace gemmd {

size_t ResidentBytes() {
  // proc(5): the second number of statm is pages of resident memory.
  std::ifstream statm("/proc/self/statm");
  size_t pages = 0;
  size_t resident_pages = 0;
  if (!(statm >> pages >> resident_pages)) return 0;
  return resident_pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

bool HeapTrimmer::Look(Clock::time_point now) {
  if (now < next_look_) return false;
  next_look_ = now + kPeriod;
  const size_t resident = resident_bytes_();
  if (resident < least_ + kGrowth) {
    least_ = std::min(least_, resident);
    return false;
  }
  malloc_trim(0);
  least_ = resident_bytes_();
  return true;
}

}  // namespace gemmd
