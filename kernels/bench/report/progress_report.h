// Shows how far a benchmark has got.
#pragma once

#include <ostream>
#include <string>

#include "absl/time/time.h"
#include "kernels/bench/result/progress.h"

namespace gemm::bench {

// "shape 12/125 4096x4096x512  35 s, about 3 min left  hgemm_mma_...".
std::string ProgressText(const Progress& progress);

// One line that is drawn over on a terminal; elsewhere a line now and then.
class ProgressReport {
 public:
  ProgressReport(std::ostream& out, bool terminal) : out_(out), terminal_(terminal) {}

  void Update(const Progress& progress);
  // Call before other output goes to the same terminal.
  void Erase();

 private:
  std::ostream& out_;
  const bool terminal_;
  bool drawn_ = false;
  absl::Duration last_ = absl::ZeroDuration();  // elapsed at the last update
};

}  // namespace gemm::bench
