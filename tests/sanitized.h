// Whether this build is a sanitizer's: its allocator is its own, and what it keeps of
// each byte of memory is memory, too.
#pragma once

namespace gemmd {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace gemmd
