// The lines of a plot, from a benchmark's rows.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernels/bench/result/row.h"

namespace gemm::bench {

// The most lines that a plot highlights, beside the baselines.
inline constexpr size_t kMostHighlights = 12;

struct PlotLine {
  std::string name;   // all that identifies it
  std::string label;  // the name without the words that all lines share
  bool baseline = false;
  // Drawn in a colour of its own and labelled.
  bool highlighted = false;
  // Keyed by the edge of the cube with as many multiplications as the shape. Shapes of one size
  // share a point, their geometric mean.
  std::map<double, double> tflops;
};

// A line for each kernel with its types, layout and parameters. The baselines are highlighted, and
// the fastest of each family, types and layout, or all kernels if they are few. Highlighted lines
// come first, the fastest before the others.
std::vector<PlotLine> PlotLines(absl::Span<const Row> rows);

// The names without the words, between underscores, that all of them begin and
// end with. Every name keeps one word of its own at least.
std::vector<std::string> WithoutSharedWords(const std::vector<std::string>& names);

// Places of labels, in the order of `wanted` and as near to it as possible: at least
// `gap` apart and, if there is room, between `low` and `high`.
std::vector<double> SpreadLabels(const std::vector<double>& wanted, double gap, double low,
                                 double high);

}  // namespace gemm::bench
