// How the time of a run is shared among its parts.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/time/time.h"

namespace gemm::bench {

// Parts are done one after the other. Each has a weight, the work it is thought
// to be.
class Schedule {
 public:
  using Clock = std::function<absl::Time()>;

  // The budget may be infinite.
  Schedule(absl::Duration budget, std::vector<double> weights, Clock now);

  // When part `i`, which starts now, is to end: with its share of what is left.
  absl::Time Deadline(size_t i) const;

  // When the budget ends.
  absl::Time End() const { return start_ + budget_; }

  absl::Duration Elapsed() const { return now_() - start_; }

  // What parts `i` and later will take, judged by those before; infinite before
  // the first is done. Never more than what is left of the budget.
  absl::Duration TimeLeft(size_t i) const;

 private:
  const absl::Duration budget_;
  const Clock now_;
  const absl::Time start_;
  std::vector<double> weight_from_;  // of part i and those after it
};

}  // namespace gemm::bench
