// How threads wait.
#pragma once

#include <cstdint>

namespace gemmd {

// How a thread waits for what comes next. To wake a thread takes tens of microseconds, as long as a
// small product. A thread that stays awake takes a core, which the bytes of a large transfer need.
enum class Urgency : uint8_t {
  kPrompt,   // awake, for a while
  kCanWait,  // asleep
};

// Of a piece of a transfer. Behind the last one, more may come at once; between two pieces it is
// the wire that takes the time.
inline Urgency UrgencyOfPiece(bool last) { return last ? Urgency::kPrompt : Urgency::kCanWait; }

// What a loop does that waits for another thread without sleeping.
inline void RelaxCpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace gemmd
