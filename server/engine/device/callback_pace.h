// How close together callbacks come on a completion thread.
#pragma once

#include <algorithm>
#include <chrono>

namespace gemmd {

// Not thread-safe.
class CallbackPace {
 public:
  using Clock = std::chrono::steady_clock;

  // To tell a caller takes about 20 us, and to start the next job takes as long. Where callbacks
  // come closer together than this, a thread that does both keeps the device waiting.
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

}  // namespace gemmd
