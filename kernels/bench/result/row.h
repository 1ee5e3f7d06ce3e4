// What was measured of one kernel on one shape.
#pragma once

#include <optional>
#include <string>

#include "gemm/problem.h"
#include "kernels/bench/spec/layout.h"
#include "kernels/bench/spec/shape.h"

namespace gemm::bench {

// How far the checked elements of D are from the exact ones.
struct SampledError {
  // The worst |D - exact| as a share of what is allowed. Infinite where a product of -1, 0 and 1
  // is not exact.
  double of_bound = 0;
  double absolute = 0;
  double first = 0;  // D's first and last element, for the eye
  double last = 0;

  // Takes in what was found of a product of -1, 0 and 1.
  void TakeExact(const SampledError& exact) {
    if (exact.of_bound != 0) of_bound = exact.of_bound;
  }
};

struct Row {
  Shape shape;
  Types types{};
  Layout layout;
  std::string kernel;
  std::string family;
  std::string params;  // see ParamsText
  // Measured as a baseline, and not because it was selected.
  bool baseline = false;

  // False: of what follows `note` alone is set, and says why.
  bool measured = false;
  // A remark on the figures; empty for most.
  std::string note;

  double seconds = 0;  // the median
  double fastest_seconds = 0;
  double slowest_seconds = 0;
  int iterations = 0;
  double tflops = 0;  // at the median
  // Over the fastest row above it on this shape: 0.05 is 5% faster. Empty where it is
  // not faster.
  std::optional<double> gain;
  // TFLOPS as a share of the baselines': of cuBLAS, on the host OpenBLAS, and of the
  // fastest of cuBLASLt's algorithms.
  std::optional<double> of_vendor;
  std::optional<double> of_tuned_vendor;
  // Of one product, of the whole device; and as a share of the fewest of a baseline. Empty where
  // they were not measured.
  std::optional<double> joules;
  std::optional<double> joules_of_baseline;
  SampledError error;

  bool right() const { return error.of_bound <= 1; }
};

}  // namespace gemm::bench
