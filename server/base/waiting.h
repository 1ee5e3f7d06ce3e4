// How threads wait.
#pragma once

#include <cstdint>

namespace gemmd {

// How a thread waits for its next work. Waking a thread takes tens of microseconds, as long as a
// small product. A thread that stays awake takes a core, which large transfers need.
enum class Urgency : uint8_t {
  kPrompt,   // awake, for a while
  kCanWait,  // asleep
};

// The urgency of a piece of a transfer. After the last one, more work may come at once. Between two
// pieces the wire takes the time.
inline Urgency UrgencyOfPiece(bool last) { return last ? Urgency::kPrompt : Urgency::kCanWait; }

// For a loop that waits for another thread without sleeping.
inline void RelaxCpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace gemmd
