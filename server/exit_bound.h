// A bound on how long the process takes to end.
#pragma once

#include <thread>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"

namespace gemmd {

// Ends the process where its orderly end takes too long. A kernel of the host, or a
// launch of a benchmark, cannot be broken off, and what holds memory under it cannot be
// taken down before it has ended: the process then ends with the work under way, and
// says so. Thread-safe.
class ExitBound {
 public:
  // `exit_code` is that of a process ended so.
  explicit ExitBound(int exit_code);
  ~ExitBound();

  // The process ends in `timeout` at the latest, with a line that says what was under
  // way. Takes the place of the bound before.
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
