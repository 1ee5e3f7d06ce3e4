#include "client/ctl/load/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace gemmd::ctl {
namespace {

constexpr size_t kHalf = Histogram::kSubBuckets / 2;
constexpr int kSubBucketBits = std::bit_width(static_cast<uint64_t>(Histogram::kSubBuckets)) - 1;

}  // namespace

// A value of at most kSubBucketBits bits is its own bucket. A longer one drops
// `shift` low bits; what is left lies in [kHalf, kSubBuckets), so each shift
// adds kHalf buckets.
int64_t Histogram::BucketOf(int64_t nanoseconds) {
  const int bits = std::bit_width(static_cast<uint64_t>(nanoseconds));
  const int shift = std::max(0, bits - kSubBucketBits);
  return shift * static_cast<int64_t>(kHalf) + (nanoseconds >> shift);
}

int64_t Histogram::HighestOf(int64_t bucket) {
  if (bucket < kSubBuckets) return bucket;
  constexpr auto kWidth = static_cast<int64_t>(kHalf);
  const int64_t shift = bucket / kWidth - 1;
  const int64_t sub_bucket = bucket - shift * kWidth;
  return ((sub_bucket + 1) << shift) - 1;
}

void Histogram::Record(absl::Duration value) {
  const int64_t nanoseconds =
      std::clamp<int64_t>(absl::ToInt64Nanoseconds(value), 0, kMaxNanoseconds);
  const auto bucket = static_cast<size_t>(BucketOf(nanoseconds));
  const size_t block = bucket / kHalf;
  if (counts_.size() <= block) counts_.resize(block + 1);
  if (counts_[block].empty()) counts_[block].resize(kHalf);
  ++counts_[block][bucket % kHalf];
  min_ = count_ == 0 ? nanoseconds : std::min(min_, nanoseconds);
  max_ = std::max(max_, nanoseconds);
  sum_ += static_cast<double>(nanoseconds);
  ++count_;
}

void Histogram::Merge(const Histogram& other) {
  if (other.count_ == 0) return;
  if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size());
  for (size_t block = 0; block < other.counts_.size(); ++block) {
    const std::vector<uint64_t>& theirs = other.counts_[block];
    if (theirs.empty()) continue;
    std::vector<uint64_t>& ours = counts_[block];
    ours.resize(kHalf);
    for (size_t i = 0; i < theirs.size(); ++i) ours[i] += theirs[i];
  }
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
  count_ += other.count_;
}

void Histogram::Clear() {
  counts_.clear();
  count_ = 0;
  min_ = max_ = 0;
  sum_ = 0;
}

absl::Duration Histogram::min() const { return absl::Nanoseconds(min_); }
absl::Duration Histogram::max() const { return absl::Nanoseconds(max_); }

absl::Duration Histogram::mean() const {
  return count_ == 0 ? absl::ZeroDuration() : absl::Nanoseconds(sum_ / static_cast<double>(count_));
}

absl::Duration Histogram::Percentile(double percentile) const {
  if (count_ == 0) return absl::ZeroDuration();
  // The rank is rounded up, but not by the rounding error of the division.
  const double exact_rank = percentile / 100 * static_cast<double>(count_);
  const auto rank =
      std::clamp<uint64_t>(static_cast<uint64_t>(std::ceil(exact_rank * (1 - 1e-12))), 1, count_);
  uint64_t seen = 0;
  for (size_t block = 0; block < counts_.size(); ++block) {
    for (size_t i = 0; i < counts_[block].size(); ++i) {
      seen += counts_[block][i];
      if (seen < rank) continue;
      return absl::Nanoseconds(std::min(HighestOf(static_cast<int64_t>(block * kHalf + i)), max_));
    }
  }
  return max();
}

}  // namespace gemmd::ctl
