// How kernels are measured.
#pragma once

#include "gemm/generate.h"

namespace gemm::bench {

struct ComparisonRules {
  int warmup = 2;       // launches of a kernel before its first timed one
  int iterations = 10;  // timed samples of each; the figure is their median
  // A kernel whose first run takes so many times the best one's, and more than a
  // millisecond, is not run again.
  double hopeless = 20;
  bool baselines = true;
  int vendor_algorithms = 8;  // of cuBLASLt to choose the best from; 0: none
  // Rows of D, and columns, whose crossings are held against the oracle.
  int checked_lines = 8;
};

// What the elements of A and B are drawn from.
inline constexpr GeneratorSpec kStandardInputs = {
    .seed = 1, .distribution = Distribution::kNormal, .low_or_mean = 0, .high_or_stddev = 1};

}  // namespace gemm::bench
