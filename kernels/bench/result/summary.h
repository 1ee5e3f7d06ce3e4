// Rows of all shapes, kernel by kernel.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernels/bench/result/row.h"

namespace gemm::bench {

// Geometric means of one kernel with its types, layout and parameters, over the
// shapes that it was measured on.
struct KernelMeans {
  std::string kernel;
  std::string family;
  Types types{};
  Layout layout;
  std::string params;
  bool baseline = false;
  size_t shapes = 0;   // that it was measured on
  size_t missing = 0;  // that it was not
  double tflops = 0;
  std::optional<double> of_vendor;        // over the shapes that both were measured on
  std::optional<double> of_tuned_vendor;  // likewise
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
  std::optional<double> per_shape_of_vendor;
  std::optional<double> per_shape_of_tuned_vendor;
};
std::vector<FamilyMeans> SummariseFamilies(absl::Span<const Row> rows);

}  // namespace gemm::bench
