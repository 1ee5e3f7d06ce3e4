// How kernels are measured.
#pragma once

#include "absl/time/time.h"
#include "gemm/generate.h"
#include "kernels/bench/spec/scales.h"

namespace gemm::bench {

struct ComparisonRules {
  int warmup = 2;       // launches of a kernel before its first timed one
  int iterations = 10;  // timed samples of each; the figure is their median
  // A sample of a shorter kernel is a batch of launches that takes about this long.
  absl::Duration sample_time = absl::Milliseconds(1);
  // A kernel is not run again if its first run takes more than a millisecond and more
  // than so many times the fastest one's.
  double cutoff = 20;
  bool baselines = true;      // whether the vendor's kernels are measured, too
  int vendor_algorithms = 8;  // of cuBLASLt, sampled like the kernels; 0: none
  // How long each kernel of a shape runs alone, after the samples, so that its energy is measured.
  // Zero: it is not.
  absl::Duration joules_time = absl::ZeroDuration();
  // Rows of D, and columns; the elements where they cross are checked by the oracle.
  int checked_lines = 8;
  // With which fp8 operands are multiplied. All of them are 1: the baselines take none, and have
  // the same products.
  Scales scales;
};

// What the elements of A and B are drawn from.
inline constexpr GeneratorSpec kStandardInputs = {
    .seed = 1, .distribution = Distribution::kNormal, .low_or_mean = 0, .high_or_stddev = 1};

}  // namespace gemm::bench
