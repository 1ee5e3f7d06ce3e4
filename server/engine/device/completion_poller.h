// The completion thread of a device that has to be asked whether work ended.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/engine/device/completion_queue.h"

namespace gemmd {

// How the poller asks. A mark is a point on a stream (a cudaEvent_t).
class CompletionProbe {
 public:
  virtual ~CompletionProbe() = default;
  // Whether the stream has come to `mark`. An error means that no mark will be
  // reached any more. Called on the poller's thread, often: must not block.
  virtual absl::StatusOr<bool> Reached(void* mark) = 0;
  // `mark` is no longer needed.
  virtual void Recycle(void* mark) = 0;
};

// Runs callbacks, each once its mark is reached, in order within a channel (one
// a stream). It polls without a break until `spin` has passed without an event;
// then it naps between polls while marks are pending, and blocks where none is.
// After an error of the probe every callback, pending or to come, gets that
// error. Thread-safe.
class CompletionPoller {
 public:
  // `probe` outlives the poller.
  CompletionPoller(std::string thread_name, int channels, absl::Duration spin,
                   CompletionProbe& probe);
  // Waits until every callback was called.
  ~CompletionPoller();

  // Calls `done(OK)` once `mark` is reached and everything posted to `channel`
  // before was called.
  void Post(int channel, void* mark, CompletionCallback done);
  // Calls `done(status)` once everything posted to `channel` before was called.
  void PostEnded(int channel, absl::Status status, CompletionCallback done);

  // Runs `function` soon on the poller's thread where that is spinning, else at
  // once on the caller's.
  void Execute(absl::AnyInvocable<void()> function);

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    int channel = 0;
    void* mark = nullptr;  // null: ended already
    absl::Status status;
    CompletionCallback done;
  };

  void Post(Entry entry);
  void Run();
  // Moves what was posted into the channels and runs what was to be executed.
  // False where nothing was.
  bool TakePosted();
  // Runs the callbacks of marks reached. True where there was any.
  bool RunReached(std::deque<Entry>& entries);
  // Sleeps a little, unless something was posted.
  void Nap();
  // Blocks until there is a post; false at the end.
  bool AwaitPost();

  CompletionProbe& probe_;
  const Clock::duration spin_;

  // The thread's own.
  std::vector<std::deque<Entry>> channels_;
  size_t pending_ = 0;  // entries in channels_
  absl::Status failure_;
  std::vector<Entry> taken_;
  std::vector<absl::AnyInvocable<void()>> executing_;

  // Tells the thread to look at posted_, so that it need not lock to see that
  // there is nothing.
  std::atomic<bool> signalled_{false};
  Mutex mutex_;
  CondVar changed_;
  std::vector<Entry> posted_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::AnyInvocable<void()>> to_execute_ ABSL_GUARDED_BY(mutex_);
  bool blocked_ ABSL_GUARDED_BY(mutex_) = false;
  bool spinning_ ABSL_GUARDED_BY(mutex_) = true;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace gemmd
