// How kernels are measured, and which ones for a tuning table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gemm/generate.h"
#include "kernels/bench/spec/layout.h"

namespace gemm::bench {

struct ComparisonRules {
  int warmup = 2;       // launches of a kernel before its first timed one
  int iterations = 10;  // timed samples of each; the figure is their median
  // A sample of a shorter kernel is a batch of launches that takes about this long.
  absl::Duration sample_time = absl::Milliseconds(1);
  // A kernel is not run again if its first run takes more than a millisecond and more than this
  // many times as long as the fastest one's.
  double cutoff = 20;
  bool baselines = true;      // whether the vendor's kernels are measured, too
  int vendor_algorithms = 8;  // of cuBLASLt, sampled like the kernels; 0: none
  // How long each kernel of a shape runs alone after the samples, to measure its energy. Zero: not
  // measured.
  absl::Duration joules_time = absl::ZeroDuration();
  // Rows of D, and columns. The oracle checks the elements at their crossings.
  int checked_lines = 8;
  // Block scales of fp8 operands. All of them are 1, so that baselines without scales compute the
  // same products.
  Scales scales;
};

// The elements of A and B.
inline constexpr GeneratorSpec kStandardInputs = {
    .seed = 1, .distribution = Distribution::kNormal, .low_or_mean = 0, .high_or_stddev = 1};

// Kernels come within this factor of the fastest to be measured again.
inline constexpr double kFinalistFactor = 1.25;

struct Estimate {
  std::string kernel;
  std::string family;
  double seconds = 0;  // 0: unknown
};

// The `best` kernels by estimate, all without an estimate, and those of libraries, since an
// estimate covers one of their many algorithms.
std::set<std::string> WorthMeasuring(const std::vector<Estimate>& kernels, size_t best);

// Every value of a launch parameter that has few, unless `values` has it already. Parameters
// with many keep their defaults.
void AddValuesToTry(const std::string& name, int64_t min, int64_t max,
                    std::map<std::string, std::vector<int64_t>>& values);

}  // namespace gemm::bench
