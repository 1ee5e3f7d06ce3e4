// The latency histogram keeps three significant digits and merges without loss.
#include "client/ctl/load/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace gemmd::ctl {
namespace {

std::vector<absl::Duration> LogUniform(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(std::log(1e-6), std::log(3600.0));
  std::vector<absl::Duration> values;
  for (size_t i = 0; i < count; ++i) values.push_back(absl::Seconds(std::exp(exponent(random))));
  return values;
}

TEST(HistogramTest, BucketsAreContiguousAndNeverWiderThanAThousandthOfTheirValues) {
  int64_t next_lowest = 0;
  const int64_t last = Histogram::BucketOf(Histogram::kMaxNanoseconds);
  for (int64_t bucket = 0; bucket <= last; ++bucket) {
    const int64_t highest = Histogram::HighestOf(bucket);
    ASSERT_EQ(Histogram::BucketOf(next_lowest), bucket);
    ASSERT_EQ(Histogram::BucketOf(highest), bucket);
    // At most 1/1024 from the lowest value to the highest.
    ASSERT_LE((highest - next_lowest) * 1024, next_lowest);
    next_lowest = highest + 1;
  }
  EXPECT_GT(next_lowest, Histogram::kMaxNanoseconds);
}

TEST(HistogramTest, EveryPercentileIsWithinAThousandthOfTheExactOne) {
  std::vector<absl::Duration> values = LogUniform(20000, 7);
  Histogram histogram;
  for (const absl::Duration value : values) histogram.Record(value);
  std::sort(values.begin(), values.end());
  for (const double percentile : {0.0, 1.0, 25.0, 50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 100.0}) {
    const auto rank = std::max<size_t>(
        1, static_cast<size_t>(std::ceil(percentile / 100 * static_cast<double>(values.size()))));
    const double exact = absl::ToDoubleNanoseconds(values[rank - 1]);
    const double found = absl::ToDoubleNanoseconds(histogram.Percentile(percentile));
    EXPECT_NEAR(found, exact, exact / 1000 + 1) << "p" << percentile;
  }
}

TEST(HistogramTest, ValuesBelowTwoMicrosecondsAreExact) {
  Histogram histogram;
  histogram.Record(absl::Nanoseconds(1));
  histogram.Record(absl::Nanoseconds(1000));
  histogram.Record(absl::Nanoseconds(1001));
  EXPECT_EQ(histogram.Percentile(1), absl::Nanoseconds(1));
  EXPECT_EQ(histogram.Percentile(50), absl::Nanoseconds(1000));
  EXPECT_EQ(histogram.Percentile(100), absl::Nanoseconds(1001));
}

TEST(HistogramTest, MinMaxAndMeanAreExact) {
  Histogram histogram;
  histogram.Record(absl::Nanoseconds(123'456'789));
  histogram.Record(absl::Nanoseconds(987'654'321));
  EXPECT_EQ(histogram.min(), absl::Nanoseconds(123'456'789));
  EXPECT_EQ(histogram.max(), absl::Nanoseconds(987'654'321));
  EXPECT_EQ(histogram.mean(), absl::Nanoseconds(555'555'555));
  EXPECT_EQ(histogram.count(), 2);
  EXPECT_LE(histogram.Percentile(99.9), histogram.max());
}

TEST(HistogramTest, MergingEqualsRecordingInOne) {
  const std::vector<absl::Duration> values = LogUniform(3000, 11);
  Histogram all;
  std::vector<Histogram> parts(3);
  for (size_t i = 0; i < values.size(); ++i) {
    all.Record(values[i]);
    parts[i % parts.size()].Record(values[i]);
  }
  Histogram merged;
  for (const Histogram& part : parts) merged.Merge(part);
  EXPECT_EQ(merged.count(), all.count());
  EXPECT_EQ(merged.min(), all.min());
  EXPECT_EQ(merged.max(), all.max());
  for (double percentile = 0; percentile <= 100; percentile += 0.5) {
    EXPECT_EQ(merged.Percentile(percentile), all.Percentile(percentile)) << percentile;
  }
}

TEST(HistogramTest, ValuesOutOfRangeCountAtItsEnds) {
  Histogram histogram;
  histogram.Record(absl::Seconds(-1));
  histogram.Record(absl::Hours(5));
  EXPECT_EQ(histogram.min(), absl::ZeroDuration());
  EXPECT_EQ(histogram.max(), absl::Hours(1));
  EXPECT_EQ(histogram.Percentile(100), absl::Hours(1));
}

TEST(HistogramTest, EmptyAndClearedHistogramsAreZero) {
  Histogram histogram;
  EXPECT_EQ(histogram.Percentile(50), absl::ZeroDuration());
  EXPECT_EQ(histogram.mean(), absl::ZeroDuration());
  histogram.Record(absl::Milliseconds(5));
  histogram.Clear();
  EXPECT_EQ(histogram.count(), 0);
  EXPECT_EQ(histogram.max(), absl::ZeroDuration());
  histogram.Record(absl::Milliseconds(7));
  EXPECT_EQ(histogram.min(), absl::Milliseconds(7));
}

}  // namespace
}  // namespace gemmd::ctl
