// Bounds the time that the process takes to end.
#pragma once

#include <thread>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"

namespace gemmd {

// Ends the process when its orderly shutdown takes too long. A call of OpenBLAS, or a
// launch of a benchmark, cannot be interrupted, and its memory cannot be freed before it has
// ended. So the process is ended with that work still running, and logs it. Thread-safe.
class ExitBound {
 public:
  // Makes its thread, so that there is one at the end, however few are left then.
  ExitBound();
  ~ExitBound();

  // Ends the process with `exit_code` after `timeout`, with a log line that says what was
  // `under_way`. Replaces the bound before.
  void Arm(absl::Duration timeout, int exit_code, absl::string_view under_way);
  void Disarm();

 private:
  void Watch();

  Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  int exit_code_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::string_view under_way_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace gemmd
