#include "client/ctl/load/series.h"

#include <algorithm>
#include <cmath>

#include "client/ctl/load/histogram.h"

namespace gemmd::ctl {
namespace {

int64_t BucketOfLatency(absl::Duration latency) {
  return Histogram::BucketOf(
      std::clamp<int64_t>(absl::ToInt64Nanoseconds(latency), 0, Histogram::kMaxNanoseconds));
}

}  // namespace

void Window::Merge(const Window& other) {
  done += other.done;
  failed += other.failed;
  for (const auto& [bucket, count] : other.latencies) latencies[bucket] += count;
}

absl::Duration PercentileOf(const Window& window, double percentile) {
  uint64_t count = 0;
  for (const auto& [bucket, of_bucket] : window.latencies) count += of_bucket;
  const double exact_rank = percentile / 100 * static_cast<double>(count);
  const auto rank =
      std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(exact_rank * (1 - 1e-12))));
  uint64_t seen = 0;
  for (const auto& [bucket, of_bucket] : window.latencies) {
    seen += of_bucket;
    if (seen >= rank) return absl::Nanoseconds(Histogram::HighestOf(bucket));
  }
  return absl::ZeroDuration();
}

void Series::AddSuccess(absl::Duration at, absl::Duration latency) {
  Window& window = At(at);
  ++window.done;
  ++window.latencies[BucketOfLatency(latency)];
}

void Series::AddFailure(absl::Duration at) {
  Window& window = At(at);
  ++window.done;
  ++window.failed;
}

void Series::AddFailure(absl::Duration at, absl::Duration waited) {
  AddFailure(at);
  ++At(at).latencies[BucketOfLatency(waited)];
}

Window& Series::At(absl::Duration at) {
  const auto index = [&] { return static_cast<size_t>(std::max<int64_t>(0, at / length_)); };
  while (index() >= kMostWindows) {
    for (size_t i = 0; i < windows_.size(); ++i) {
      if (i % 2 == 1) {
        windows_[i / 2].Merge(windows_[i]);
      } else if (i > 0) {
        windows_[i / 2] = std::move(windows_[i]);
      }
    }
    windows_.resize((windows_.size() + 1) / 2);
    length_ *= 2;
  }
  if (windows_.size() <= index()) windows_.resize(index() + 1);
  return windows_[index()];
}

}  // namespace gemmd::ctl
