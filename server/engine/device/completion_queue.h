// The completion thread of a device whose streams report the end of work themselves.
#pragma once

#include <deque>
#include <string>
#include <thread>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/base/mutex.h"

namespace gemmd {

using CompletionCallback = absl::AnyInvocable<void(absl::Status)>;

// Runs callbacks on its own thread, in the order of the posts. Thread-safe.
class CompletionQueue {
 public:
  explicit CompletionQueue(std::string thread_name);
  // Runs all posted callbacks, then ends the thread.
  ~CompletionQueue();

  // Calls `done(status)` soon.
  void Post(CompletionCallback done, absl::Status status);
  // Whether other callbacks wait.
  bool HasMore();

 private:
  struct Entry {
    CompletionCallback done;
    absl::Status status;
  };
  void Run();

  Mutex mutex_;
  CondVar changed_;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace gemmd
