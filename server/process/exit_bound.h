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
  // `exit_code` is used where this object ends the process.
  explicit ExitBound(int exit_code);
  ~ExitBound();

  // Ends the process after `timeout`, with a log line that says what was `under_way`.
  // Replaces the bound before.
  void Arm(absl::Duration timeout, absl::string_view under_way);
  void Disarm();

 private:
  void Watch();

  const int exit_code_;
  Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::string_view under_way_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace gemmd
