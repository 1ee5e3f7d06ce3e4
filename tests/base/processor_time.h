// The time that a thread has taken of its processor, which a busy machine does not change.
#pragma once

#include <pthread.h>
#include <time.h>

namespace gemmd {

// Seconds. The thread must not have ended.
inline double ProcessorSeconds(pthread_t thread) {
  clockid_t clock = CLOCK_THREAD_CPUTIME_ID;
  pthread_getcpuclockid(thread, &clock);
  timespec used{};
  clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

}  // namespace gemmd
