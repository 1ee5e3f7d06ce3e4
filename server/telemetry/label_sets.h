// The values that labels may have. All are known when the server starts, so a request
// cannot add time series; of the names of callers, there is a bound.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/base/mutex.h"

namespace gemmd {

// Values by index. The last one is the fallback for any other value. Thread-safe:
// immutable after construction.
class LabelSet {
 public:
  // `values` are distinct, and none is `fallback`.
  LabelSet(std::vector<std::string> values, std::string fallback);

  size_t size() const { return values_.size(); }
  size_t IndexOf(absl::string_view value) const;
  size_t fallback() const { return values_.size() - 1; }
  const std::string& operator[](size_t index) const { return values_[index]; }

 private:
  std::vector<std::string> values_;
  absl::flat_hash_map<std::string, size_t> index_;
};

// Callers by their names, in the order in which they first come. The first kMostNames have
// an index of their own; all that come later share one. Thread-safe.
class CallerLabels {
 public:
  static constexpr size_t kMostNames = 64;
  static constexpr size_t size() { return kMostNames + 1; }
  size_t IndexOf(absl::string_view caller);
  // "other callers" for the shared one: no caller's name has a space.
  std::string operator[](size_t index) const;

 private:
  mutable Mutex mutex_;
  std::vector<std::string> names_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, size_t> index_ ABSL_GUARDED_BY(mutex_);
};

// Element types by gemm::DType, and "none".
LabelSet DTypeLabels();

// The canonical status codes by number: "OK", "RESOURCE_EXHAUSTED". The fallback for
// other numbers is "UNRECOGNIZED".
LabelSet OutcomeLabels();
size_t OutcomeIndex(absl::StatusCode code);

// The phases of a job, in the order of PhaseDurations.
enum class Phase : size_t { kReceive, kQueue, kHostToDevice, kKernel, kDeviceToHost, kSend };
inline constexpr size_t kPhaseCount = 6;
absl::string_view Name(Phase phase);  // "receive", "host_to_device"

// The direction of a transfer, as seen from the server.
enum class Direction : size_t { kIn, kOut };
inline constexpr size_t kDirectionCount = 2;
absl::string_view Name(Direction direction);  // "in", "out"

}  // namespace gemmd
