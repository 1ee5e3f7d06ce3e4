// Threads for bulk work, such as copies of payload: gRPC's own never do any.
#pragma once

#include <deque>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "server/base/mutex.h"

namespace gemmd {

// A FIFO of functions over a fixed number of threads. Thread-safe. Its length
// is bounded by its user: each function that copies holds a staging block.
class Workers {
 public:
  explicit Workers(int threads);
  // Runs what was scheduled, then stops.
  ~Workers();

  void Schedule(absl::AnyInvocable<void()> function);

 private:
  void Loop();

  Mutex mutex_;
  CondVar wake_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<absl::AnyInvocable<void()>> functions_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace gemmd
