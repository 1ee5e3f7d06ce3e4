// The results of a benchmark: a row for each kernel and shape, and how far it has got.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gemm/problem.h"
#include "kernels/bench/spec/layout.h"
#include "kernels/bench/spec/shape.h"

namespace gemm::bench {

// How far the checked elements of D are from the exact ones.
struct SampledError {
  // The worst |D - exact| as a share of its bound. Infinite if a product of -1, 0 and 1 is not
  // exact.
  double of_bound = 0;
  double absolute = 0;
  double first = 0;  // D's first and last element, for the eye
  double last = 0;

  // Adds the error of a product of -1, 0 and 1.
  void TakeExact(const SampledError& exact) {
    if (exact.of_bound != 0) of_bound = exact.of_bound;
  }
};

// One kernel on one shape.
struct Row {
  Shape shape;
  Types types{};
  Layout layout;
  std::string kernel;
  std::string family;
  std::string params;  // see ParamsText
  // Measured as a baseline, and not because it was selected.
  bool baseline = false;

  // False: only `note` is set below, and says why.
  bool measured = false;
  // A remark on the figures; empty for most.
  std::string note;

  double seconds = 0;  // the median
  double fastest_seconds = 0;
  double slowest_seconds = 0;
  int iterations = 0;
  double tflops = 0;  // at the median
  // Speed-up over the fastest row above it on this shape: 0.05 is 5% faster. Empty if it is not
  // faster.
  std::optional<double> gain;
  // TFLOPS as a share of cuBLAS's (OpenBLAS's on the host), and of the fastest algorithm of
  // cuBLASLt.
  std::optional<double> of_vendor;
  std::optional<double> of_tuned_vendor;
  // Joules of the whole device for one product, and as a share of the fewest joules of a baseline.
  // Empty if not measured.
  std::optional<double> joules;
  std::optional<double> joules_of_baseline;
  SampledError error;

  bool right() const { return error.of_bound <= 1; }
};

// The device and the run, so that results can be compared: "label", "value"; the device's name
// first.
using Metadata = std::vector<std::pair<std::string, std::string>>;

// How far a benchmark has got.
struct Progress {
  size_t shape = 0;  // index of the current shape
  size_t shapes = 0;
  Shape at;
  std::string step;  // the current step
  absl::Duration elapsed;
  absl::Duration left;  // infinite while unknown
};

}  // namespace gemm::bench
