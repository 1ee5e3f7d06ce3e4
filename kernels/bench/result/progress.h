// How far a benchmark has got.
#pragma once

#include <cstddef>
#include <string>

#include "absl/time/time.h"
#include "kernels/bench/spec/shape.h"

namespace gemm::bench {

struct Progress {
  size_t shape = 0;  // index of the current shape
  size_t shapes = 0;
  Shape at;
  std::string step;  // what runs now
  absl::Duration elapsed;
  absl::Duration left;  // infinite while unknown
};

}  // namespace gemm::bench
