// Asks tcmalloc where the build has it, else glibc.
#include "server/process/heap.h"

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

// Its page heap alone. What the threads' caches and the lists of small sizes keep cannot
// be given back, and is bounded.
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

}  // namespace gemmd
