#include "server/engine/core/copy_times.h"

#include <algorithm>

namespace gemmd {
namespace {

// As many as smooth out single copies and still follow a change.
constexpr int kCopiesOfAMean = 16;

void MixIntoMean(double value, int& samples, double& mean) {
  samples = std::min(samples + 1, kCopiesOfAMean);
  mean += (value - mean) / samples;
}

}  // namespace

absl::Duration CopyTimes::Estimate(CopyRoute route, uint64_t bytes) const {
  if (bytes == 0) return absl::ZeroDuration();
  MutexLock lock(mutex_);
  const Route& of = routes_[static_cast<size_t>(route)];
  return absl::Seconds(of.overhead_seconds + static_cast<double>(bytes) * of.seconds_per_byte);
}

void CopyTimes::Observe(CopyRoute route, uint64_t bytes, absl::Duration took) {
  const double seconds = absl::ToDoubleSeconds(took);
  MutexLock lock(mutex_);
  Route& of = routes_[static_cast<size_t>(route)];
  if (bytes <= kShortBytes) return MixIntoMean(seconds, of.short_copies, of.overhead_seconds);
  const double rest = std::max(seconds - of.overhead_seconds, 0.0);
  MixIntoMean(rest / static_cast<double>(bytes), of.long_copies, of.seconds_per_byte);
}

}  // namespace gemmd
