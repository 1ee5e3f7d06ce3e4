// The requests of a load test by time.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace gemmd::ctl {

// The requests that ended within one window of time.
struct Window {
  uint64_t done = 0;  // those that failed among them
  uint64_t failed = 0;
  // Counts by Histogram::BucketOf: of requests that succeeded, and of the waiting of those that
  // were not sent in time.
  std::map<int64_t, uint64_t> latencies;

  void Merge(const Window& other);
};

// The highest latency of that percentile, to the width of a bucket; zero where there is none.
absl::Duration PercentileOf(const Window& window, double percentile);

// Windows of one length, from the end of the warm-up on. When there would be more than
// kMostWindows, two become one, so a test of any length has a bound. Not thread-safe.
class Series {
 public:
  static constexpr size_t kMostWindows = 480;

  Series() = default;
  explicit Series(absl::Duration length) : length_(length) {}

  void AddSuccess(absl::Duration at, absl::Duration latency);
  void AddFailure(absl::Duration at);
  // A request that was not sent: `waited` counts as its latency.
  void AddFailure(absl::Duration at, absl::Duration waited);
  void Append(Window window) { windows_.push_back(std::move(window)); }

  absl::Duration length() const { return length_; }
  const std::vector<Window>& windows() const { return windows_; }

 private:
  Window& At(absl::Duration at);

  absl::Duration length_ = absl::Milliseconds(250);
  std::vector<Window> windows_;
};

}  // namespace gemmd::ctl
