// What a plot shows of a benchmark's rows.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernels/bench/row.h"

namespace gemm::bench {

// How many lines a plot tells apart by colour and dashes, beside the baselines.
inline constexpr size_t kMostHighlights = 12;

struct PlotLine {
  std::string name;   // all that identifies it
  std::string label;  // the same without what all lines have in common
  bool baseline = false;
  // Told apart and labelled; others are there for the eye.
  bool highlighted = false;
  // Over the edge of the cube with as many multiplications as the shape. Shapes
  // of one size are one point, their geometric mean.
  std::map<double, double> tflops;
};

// A line a kernel with the same types, layout and parameters. Highlighted are
// the baselines and the best of each family with each types and layout, the fastest
// first, or all where they are few enough. The fastest highlights come first.
std::vector<PlotLine> PlotLines(absl::Span<const Row> rows);

// The names without the words, between underscores, that all of them begin and
// end with. Every name keeps one word of its own at least.
std::vector<std::string> WithoutSharedWords(const std::vector<std::string>& names);

// Places of labels, in the order of `wanted`, as near to where they are wanted as
// they can be: at least `gap` apart and from `low` to `high`, if there is room.
std::vector<double> SpreadLabels(const std::vector<double>& wanted, double gap, double low,
                                 double high);

}  // namespace gemm::bench
