// The allocator of this process: what it has handed out, and what it keeps.
#pragma once

#include <cstddef>

namespace gemmd {

// Of all threads. Zero where the allocator does not tell, as under a sanitizer.
size_t HeapBytesInUse();
// What was freed and is kept for later allocations.
size_t FreeHeapBytes();

// Returns what can be returned to the system. Holds the allocator's locks meanwhile.
void GiveBackFreeHeap();

}  // namespace gemmd
