// The completion thread of a device that has to be polled for the end of work.
#pragma once

#include <algorithm>
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
#include "server/base/waiting.h"
#include "server/engine/device/completion_queue.h"

namespace gemmd {

// How close together callbacks come on a completion thread. Not thread-safe.
class CallbackPace {
 public:
  using Clock = std::chrono::steady_clock;

  // Telling a caller takes about 20 us, and starting the next job takes as long. If callbacks come
  // closer together than this, a thread that does both keeps the device waiting.
  static constexpr std::chrono::microseconds kCrowd{75};

  void OnCallback(Clock::time_point now) {
    const Clock::duration gap = std::min<Clock::duration>(now - last_, kLongest);
    mean_gap_ += (gap - mean_gap_) / kSmoothed;
    last_ = now;
  }

  // Whether the last ones came so fast, on average.
  bool crowds() const { return mean_gap_ < kCrowd; }

 private:
  // A rest counts for no more, so that a crowd behind it is soon seen.
  static constexpr std::chrono::milliseconds kLongest{1};
  static constexpr int kSmoothed = 8;

  Clock::time_point last_;
  Clock::duration mean_gap_ = kLongest;
};

// The poller's interface to the device. A mark is a point on a stream (a cudaEvent_t).
class CompletionProbe {
 public:
  virtual ~CompletionProbe() = default;
  // Whether the stream has reached `mark`. After an error, no mark will be reached any
  // more. Called often, on the poller's thread: must not block.
  virtual absl::StatusOr<bool> Reached(void* mark) = 0;
  // `mark` is no longer needed.
  virtual void Recycle(void* mark) = 0;
};

// Runs each callback once its mark is reached, in order within a channel (one for each
// stream). It polls continuously until `spin` has passed without a prompt callback that was posted
// or ran, or a call of Execute. Then it sleeps briefly between polls while marks are pending, and
// blocks if there are none. After an error of the probe, all pending and later callbacks get that
// error. Thread-safe.
class CompletionPoller {
 public:
  // `probe` must outlive the poller.
  CompletionPoller(std::string thread_name, int channels, absl::Duration spin,
                   CompletionProbe& probe);
  // Waits until every callback has run.
  ~CompletionPoller();

  // Calls `done(OK)` once `mark` is reached and every earlier callback of `channel` has
  // run.
  void Post(int channel, void* mark, CompletionCallback done, Urgency urgency = Urgency::kPrompt);
  // The same for a mark that `done` keeps alive, and that is not recycled.
  void PostBorrowed(int channel, void* mark, CompletionCallback done,
                    Urgency urgency = Urgency::kPrompt);
  // Calls `done(status)` once every earlier callback of `channel` has run.
  void PostEnded(int channel, absl::Status status, CompletionCallback done);

  // Whether other entries are pending or posted, or callbacks crowd. For callbacks alone: it is of
  // the thread.
  bool IsBusy() const {
    return pending_ > 0 || signalled_.load(std::memory_order_acquire) || pace_.crowds();
  }

  // Runs `function` soon on the poller's thread if that is spinning, else at once on the
  // caller's.
  void Execute(absl::AnyInvocable<void()> function);

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    int channel = 0;
    void* mark = nullptr;  // null: ended already
    bool borrowed = false;
    Urgency urgency = Urgency::kPrompt;
    absl::Status status;
    CompletionCallback done;
  };

  void Post(Entry entry);
  void Run();
  // The outcome of a look.
  struct Found {
    bool any = false;
    bool prompt = false;  // a prompt callback, or one given to Execute
  };

  // Moves posted entries into the channels, and runs the functions given to Execute.
  void TakePosted(Found& found);
  // Runs the callbacks whose marks are reached.
  void RunReached(Found& found);
  // Whether the callback may run. Gives back the mark if so.
  bool HasEnded(const Entry& entry);
  // Sleeps briefly, unless something was posted.
  void Nap();
  // Blocks until something is posted; false at destruction.
  bool AwaitPost();

  CompletionProbe& probe_;
  const Clock::duration spin_;

  // Used only by the thread.
  std::vector<std::deque<Entry>> channels_;
  size_t pending_ = 0;  // entries in channels_
  CallbackPace pace_;
  absl::Status failure_;
  std::vector<Entry> taken_;
  std::vector<absl::AnyInvocable<void()>> executing_;

  // Tells the thread to check posted_, so that it need not lock while there is nothing.
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
