// What a loop does that waits for another thread without sleeping.
#pragma once

namespace gemmd {

inline void RelaxCpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace gemmd
