// Ctrl-C as an early end with what there is, instead of none.
#pragma once

#include <signal.h>

#include <atomic>

namespace gemmd::ctl {

// While it lives the first SIGINT or SIGTERM sets a flag; the next one ends the
// program. One at a time.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  // True once a signal has come; stays so when the object has gone.
  static const std::atomic<bool>& stopped();

 private:
  struct sigaction old_interrupt_ = {};
  struct sigaction old_terminate_ = {};
};

}  // namespace gemmd::ctl
