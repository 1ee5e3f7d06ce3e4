#include "kernels/bench/measure/energy_meter.h"

#include "absl/strings/str_cat.h"

namespace gemm::bench {

bool EnergyMeter::Add(const Reading& now) {
  if (!changed_) {
    changed_ = now;
    return true;
  }
  if (now.joules == changed_->joules) {
    if (now.time - changed_->time < kLongestTick) return true;
    result_ = absl::UnavailableError(
        absl::StrCat("the energy counter did not change for ", absl::FormatDuration(kLongestTick)));
    return false;
  }
  if (now.joules < changed_->joules) {
    result_ = absl::UnavailableError("the energy counter went back");
    return false;
  }
  changed_ = now;
  if (!start_) {
    start_ = now;
    return true;
  }
  if (now.time - start_->time < least_) return true;
  result_ = (now.joules - start_->joules) / static_cast<double>(now.launches - start_->launches);
  return false;
}

}  // namespace gemm::bench
