#include "server/telemetry/label_sets.h"

#include <utility>

#include "gemm/dtype.h"

namespace gemmd {
namespace {

constexpr int kStatusCodeCount = 17;  // OK to UNAUTHENTICATED

}  // namespace

LabelSet::LabelSet(std::vector<std::string> values, std::string fallback)
    : values_(std::move(values)) {
  values_.push_back(std::move(fallback));
  for (size_t i = 0; i < values_.size(); ++i) index_.emplace(values_[i], i);
}

size_t LabelSet::IndexOf(absl::string_view value) const {
  const auto found = index_.find(value);
  return found == index_.end() ? fallback() : found->second;
}

size_t CallerLabels::IndexOf(absl::string_view caller) {
  MutexLock lock(mutex_);
  if (const auto found = index_.find(caller); found != index_.end()) return found->second;
  if (names_.size() == kMostNames) return kMostNames;
  names_.emplace_back(caller);
  index_.emplace(names_.back(), names_.size() - 1);
  return names_.size() - 1;
}

std::string CallerLabels::operator[](size_t index) const {
  MutexLock lock(mutex_);
  return index == kMostNames ? "other callers" : names_[index];
}

LabelSet DTypeLabels() {
  std::vector<std::string> names;
  names.reserve(gemm::kDTypeCount);
  for (int i = 0; i < gemm::kDTypeCount; ++i) {
    names.emplace_back(gemm::Name(static_cast<gemm::DType>(i)));
  }
  return LabelSet(std::move(names), "none");
}

LabelSet OutcomeLabels() {
  std::vector<std::string> names;
  names.reserve(kStatusCodeCount);
  for (int i = 0; i < kStatusCodeCount; ++i) {
    names.push_back(absl::StatusCodeToString(static_cast<absl::StatusCode>(i)));
  }
  return LabelSet(std::move(names), "UNRECOGNIZED");
}

size_t OutcomeIndex(absl::StatusCode code) {
  const int number = static_cast<int>(code);
  const bool known = number >= 0 && number < kStatusCodeCount;
  return static_cast<size_t>(known ? number : kStatusCodeCount);
}

absl::string_view Name(Phase phase) {
  switch (phase) {
    case Phase::kReceive:
      return "receive";
    case Phase::kQueue:
      return "queue";
    case Phase::kHostToDevice:
      return "host_to_device";
    case Phase::kKernel:
      return "kernel";
    case Phase::kDeviceToHost:
      return "device_to_host";
    case Phase::kSend:
      return "send";
  }
  return "";
}

absl::string_view Name(Direction direction) { return direction == Direction::kIn ? "in" : "out"; }

}  // namespace gemmd
