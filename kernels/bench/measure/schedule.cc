#include "kernels/bench/measure/schedule.h"

#include <algorithm>
#include <utility>

namespace gemm::bench {

Schedule::Schedule(absl::Duration budget, std::vector<double> weights, Clock now)
    : budget_(budget), now_(std::move(now)), start_(now_()), weight_from_(std::move(weights)) {
  for (size_t i = weight_from_.size(); i-- > 1;) weight_from_[i - 1] += weight_from_[i];
  weight_from_.push_back(0);
}

absl::Time Schedule::Deadline(size_t i) const {
  if (budget_ == absl::InfiniteDuration()) return absl::InfiniteFuture();
  const double share = (weight_from_[i] - weight_from_[i + 1]) / weight_from_[i];
  return now_() + std::max(budget_ - Elapsed(), absl::ZeroDuration()) * share;
}

absl::Duration Schedule::TimeLeft(size_t i) const {
  const double done = weight_from_[0] - weight_from_[i];
  const absl::Duration judged =
      done <= 0 ? absl::InfiniteDuration() : Elapsed() * (weight_from_[i] / done);
  return std::min(judged, std::max(budget_ - Elapsed(), absl::ZeroDuration()));
}

}  // namespace gemm::bench
