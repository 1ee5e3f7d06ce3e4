// Shares the time of a run among its parts.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/time/time.h"

namespace gemm::bench {

// Parts run one after the other. Each has a weight: its expected work.
class Schedule {
 public:
  using Clock = std::function<absl::Time()>;

  // The budget may be infinite.
  Schedule(absl::Duration budget, std::vector<double> weights, Clock now);

  // When part `i`, which starts now, must end: after its share of the time left.
  absl::Time Deadline(size_t i) const;

  // When the budget ends.
  absl::Time End() const { return start_ + budget_; }

  absl::Duration Elapsed() const { return now_() - start_; }

  // The time that part `i` and later ones will take, estimated from those before;
  // infinite before the first is done. Never more than the budget has left.
  absl::Duration TimeLeft(size_t i) const;

 private:
  const absl::Duration budget_;
  const Clock now_;
  const absl::Time start_;
  std::vector<double> weight_from_;  // of part i and those after it
};

}  // namespace gemm::bench
