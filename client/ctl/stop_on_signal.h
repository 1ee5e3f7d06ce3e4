// Ctrl-C as an early end that still prints the results so far.
#pragma once

#include <atomic>

#include "absl/status/status.h"

namespace gemmd::ctl {

// While this object lives, the first SIGINT or SIGTERM sets a flag; the next one
// ends the program. At most one object at a time.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  // True once a signal was received; stays true when the object is destroyed.
  static const std::atomic<bool>& stopped();
};

// Whether that of a call is what such a signal has made of it.
inline bool EndedBySignal(const absl::Status& status) {
  return absl::IsCancelled(status) && StopOnSignal::stopped();
}

}  // namespace gemmd::ctl
