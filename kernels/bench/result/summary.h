// Rows of all shapes, kernel by kernel.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernels/bench/result/row.h"

namespace gemm::bench {

// A shape below this share of a baseline counts as lost. Runs scatter by less.
inline constexpr double kLostShare = 0.97;

// A kernel compared with a baseline, over the shapes that both were measured on.
struct OfBaseline {
  double mean = 0;  // geometric, of the shares of TFLOPS
  // The sum of the baseline's times over the sum of the kernel's. Every second has the same
  // weight here, and every shape in the mean.
  double by_time = 0;
  size_t shapes = 0;
  size_t lost = 0;  // of them, those below kLostShare
};

// Geometric means of one kernel with its types, layout and parameters, over the
// shapes that it was measured on.
struct KernelMeans {
  std::string kernel;
  std::string family;
  Types types{};
  Layout layout;
  std::string params;
  bool baseline = false;
  size_t shapes = 0;   // on which it was measured
  size_t missing = 0;  // on which it was not
  double tflops = 0;
  std::optional<OfBaseline> of_vendor;
  std::optional<OfBaseline> of_tuned_vendor;
  // Empty unless they were measured on every shape that the kernel was.
  std::optional<double> joules;
  std::optional<double> joules_of_baseline;  // over the shapes that have it
  double worst_of_bound = 0;
};

// In the order in which they first appear.
std::vector<KernelMeans> SummariseKernels(absl::Span<const Row> rows);

// For each family, types and layout: the row with the highest mean among those that
// miss the fewest shapes, and the means of the fastest row of each shape. Baselines
// are left out.
struct FamilyMeans {
  KernelMeans best;
  double per_shape_tflops = 0;
  std::optional<OfBaseline> per_shape_of_vendor;
  std::optional<OfBaseline> per_shape_of_tuned_vendor;
};
std::vector<FamilyMeans> SummariseFamilies(absl::Span<const Row> rows);

// The middle value; the mean of the middle two if their number is even. 0 if there are none.
double Median(std::vector<double> values);

// All values are positive. 0 if there are none.
double GeometricMean(const std::vector<double>& values);

}  // namespace gemm::bench
