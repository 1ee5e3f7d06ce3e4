// The time that this process has taken of its processors, which a busy machine does not change.
#pragma once

#include <time.h>

namespace gemmd {

// Seconds, of all threads.
inline double ProcessorSeconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

}  // namespace gemmd
