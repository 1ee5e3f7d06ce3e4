// The common parts of checks on the host and on the GPU: the rule for rows, the signs of r, and the
// layout of sums in scratch memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gemm/check.h"
#include "kernels/check/line_sums.h"
#include "kernels/check/row_rule.h"
#include "kernels/numeric/host_device.h"

namespace gemm {

// 64 signs of r: those of the elements from 64 * `word` on, a bit each. SplitMix64 from `seed`.
GEMM_HOST_DEVICE inline uint64_t SignWord(uint64_t seed, int64_t word) {
  uint64_t z = seed + (static_cast<uint64_t>(word) + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
// The sign of element `j`.
GEMM_HOST_DEVICE inline double SignOf(uint64_t seed, int64_t j) {
  return SignWord(seed, j / 64) >> (j % 64) & 1 ? 1.0 : -1.0;
}

// `problem` has rounded scalars.
RowRule MakeRowRule(const Problem& problem, uint64_t seed);

// On a GPU several blocks sum a line that runs across the rows of the memory. Each block takes at
// least kMinSplit of its elements, and there are at most kMaxSplits blocks.
inline constexpr int64_t kMinSplit = 128;
inline constexpr int kMaxSplits = 32;
// The most parts of the rows. A block judges each part.
inline constexpr int kMaxOutcomes = 256;
constexpr int SplitsFor(int64_t length) {
  const int64_t splits = length / kMinSplit;
  return static_cast<int>(splits < 1 ? 1 : splits > kMaxSplits ? kMaxSplits : splits);
}

// The arrays of a check. `parts` of A and B have their splits one after the other.
struct CheckMemory {
  double* r;      // n signs
  double* zeros;  // n: what r lacks
  double* ones;   // n: the weight of magnitudes
  double* y;      // k: B r, with what it lacks, and the norms of B's rows
  double* y_low;
  double* b_norms;
  LineSums* b_parts;  // k for each split
  LineSums* a_parts;  // m for each split
  LineSums* d;        // m
  LineSums* c;        // m
  LineSums* bias;     // 1
  // On a GPU alone: the sum of b_norms, and the outcomes of parts of the rows.
  double* b_norm_sum;
  CheckOutcome* outcomes;

  Weights signs() const { return {r, zeros, ones}; }
  Weights products() const { return {y, y_low, b_norms}; }
};

// Lays the arrays out from `scratch` on. Null gives the size alone.
size_t LayOut(const Problem& problem, void* scratch, CheckMemory* memory);

}  // namespace gemm
