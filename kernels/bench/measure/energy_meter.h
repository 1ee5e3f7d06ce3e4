// Joules a launch, from a counter that changes only now and then.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gemm::bench {

// Takes readings while a kernel runs back to back. Measures from one change of the counter to
// another, as only at a change the reading is up to date.
class EnergyMeter {
 public:
  struct Reading {
    double joules = 0;
    int64_t launches = 0;  // that have ended
    absl::Time time;
  };

  // The longest wait for a change of the counter.
  static constexpr absl::Duration kLongestTick = absl::Seconds(1);

  // The two changes are at least `least` apart.
  explicit EnergyMeter(absl::Duration least) : least_(least) {}

  // Adds the counter's current reading. Returns whether more readings are needed.
  bool Add(const Reading& now);

  // Valid once Add has returned false. UNAVAILABLE if the counter stood still, or went back.
  const absl::StatusOr<double>& joules_per_launch() const { return result_; }

 private:
  const absl::Duration least_;
  std::optional<Reading> changed_;  // the first reading, or the last that differed from its last
  std::optional<Reading> start_;    // at the first change
  absl::StatusOr<double> result_ = absl::UnavailableError("the energy was not read");
};

}  // namespace gemm::bench
