// Latencies with three significant digits at every magnitude.
//
// The bucket layout is that of Gil Tene's HdrHistogram
// (https://github.com/HdrHistogram/HdrHistogram): 2048 linear sub-buckets
// cover the smallest values one by one, and each further doubling of the range
// is cut into the 1024 sub-buckets of the upper half, each twice as wide as
// those before. A bucket is thus never wider than 1/1024 of the values in it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace gemmd::ctl {

// Counts durations up to an hour, to the nanosecond below 2.048 us and within
// 1/1024 of the value above. Not thread-safe: give each thread its own and
// merge them.
class Histogram {
 public:
  static constexpr int64_t kMaxNanoseconds = int64_t{3'600} * 1'000'000'000;
  static constexpr int64_t kSubBuckets = 2048;

  Histogram();

  // Negative values count as 0 and values past an hour as an hour.
  void Record(absl::Duration value);
  void Merge(const Histogram& other);
  void Clear();

  uint64_t count() const { return count_; }
  // Exact; zero while nothing is recorded.
  absl::Duration min() const;
  absl::Duration max() const;
  absl::Duration mean() const;

  // The smallest recorded value, to the width of its bucket, that `percentile`
  // per cent of the values do not exceed. 0 <= percentile <= 100. Zero while
  // nothing is recorded; never above max().
  absl::Duration Percentile(double percentile) const;

  // The bucket of a value, and the largest value of that bucket, in
  // nanoseconds; open for tests.
  static int64_t BucketOf(int64_t nanoseconds);
  static int64_t HighestOf(int64_t bucket);

 private:
  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  int64_t min_ = 0;
  int64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace gemmd::ctl
