// The rates of an H200 of 700 W under load, for the formulas of estimates.
#pragma once

#include <cmath>

namespace gemm::h200 {

inline constexpr double kMultiprocessors = 132;
// Bytes a second: into a multiprocessor, out of the L2, and of the memory.
inline constexpr double kMultiprocessorRate = 120e9, kL2Rate = 11e12, kMemoryRate = 4.1e12;
// Bytes of D a second that a multiprocessor stores while it does nothing else.
inline constexpr double kStoreRate = 45e9;
// Seconds of a launch, and of one that transposes.
inline constexpr double kLaunch = 1.8e-6, kTranspose = 2e-6;

// Two resources that are used at the same time: a little longer than the slower one.
inline double Together(double x, double y) {
  x *= x;
  y *= y;
  return std::sqrt(std::sqrt(x * x + y * y));
}

}  // namespace gemm::h200
