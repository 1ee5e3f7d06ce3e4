// Latencies with three significant digits at every magnitude.
//
// The bucket layout is that of Gil Tene's HdrHistogram
// (https://github.com/HdrHistogram/HdrHistogram). The values below 2048 have a
// bucket each. Each further doubling of the range has 1024 buckets, each twice as
// wide as the ones before. So a bucket is never wider than 1/1024 of its values.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace gemmd::ctl {

// Counts durations up to an hour: below 2.048 us exact to the nanosecond, above
// within 1/1024 of the value. Not thread-safe: give each thread its own and merge
// them.
class Histogram {
 public:
  static constexpr int64_t kMaxNanoseconds = int64_t{3'600} * 1'000'000'000;
  static constexpr int64_t kSubBuckets = 2048;

  // Negative values count as 0, values above an hour as an hour.
  void Record(absl::Duration value);
  void Merge(const Histogram& other);
  void Clear();

  uint64_t count() const { return count_; }
  // Exact. Zero if nothing is recorded.
  absl::Duration min() const;
  absl::Duration max() const;
  absl::Duration mean() const;

  // The smallest recorded value, to the width of its bucket, that `percentile` per
  // cent of the values do not exceed. 0 <= percentile <= 100. Never above max().
  // Zero if nothing is recorded.
  absl::Duration Percentile(double percentile) const;

  // The bucket of a value, and the largest value of a bucket, in nanoseconds. Public
  // for tests.
  static int64_t BucketOf(int64_t nanoseconds);
  static int64_t HighestOf(int64_t bucket);

 private:
  // Blocks of buckets. A block is empty until it has a value: most never have one.
  std::vector<std::vector<uint64_t>> counts_;
  uint64_t count_ = 0;
  int64_t min_ = 0;
  int64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace gemmd::ctl
