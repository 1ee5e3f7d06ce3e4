#include "server/process/heap_trimmer.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

// Asks tcmalloc where the build has it, else glibc.
#ifdef GEMMD_TCMALLOC
#include <gperftools/malloc_extension_c.h>
#else
#include <malloc.h>
#endif

namespace gemmd {

#ifdef GEMMD_TCMALLOC

namespace {

size_t TcmallocProperty(const char* name) {
  size_t value = 0;
  return MallocExtension_GetNumericProperty(name, &value) != 0 ? value : 0;
}

}  // namespace

size_t HeapBytesInUse() { return TcmallocProperty("generic.current_allocated_bytes"); }

// Its page heap alone. Memory in the threads' caches and the lists of small sizes cannot be given
// back, and is bounded.
size_t FreeHeapBytes() { return TcmallocProperty("tcmalloc.pageheap_free_bytes"); }

void GiveBackFreeHeap() { MallocExtension_ReleaseFreeMemory(); }

#else

size_t HeapBytesInUse() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// In all of its arenas, resident or not.
size_t FreeHeapBytes() { return mallinfo2().fordblks; }

void GiveBackFreeHeap() { malloc_trim(0); }

#endif

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
