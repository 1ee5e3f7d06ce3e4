#include "kernels/bench/report/plot.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/bench/report/chart.h"
#include "kernels/bench/report/plot_lines.h"
#include "kernels/bench/spec/selection.h"

namespace gemm::bench {
namespace {

// The value of what all rows share, or how many there are.
template <typename Value>
std::string OneOrCount(absl::Span<const Row> rows, Value value, absl::string_view many) {
  std::set<std::string> values;
  for (const Row& row : rows) values.insert(value(row));
  return values.size() == 1 ? *values.begin() : absl::StrCat(values.size(), " ", many);
}

std::string WhatWasMeasured(absl::Span<const Row> rows, const std::string& suite) {
  const std::string shapes = OneOrCount(
      rows, [](const Row& row) { return ShapeName(row.shape); }, "shapes");
  return absl::StrJoin(
      {OneOrCount(
           rows, [](const Row& row) { return TypesName(row.types); }, "kinds of types"),
       OneOrCount(
           rows, [](const Row& row) { return absl::StrCat("layout ", LayoutName(row.layout)); },
           "layouts"),
       suite.empty() ? shapes : absl::StrCat("suite ", suite, ", ", shapes)},
      "; ");
}

std::string WhatIsShown(const std::vector<PlotLine>& lines) {
  const auto grey = std::count_if(lines.begin(), lines.end(),
                                  [](const PlotLine& line) { return !line.highlighted; });
  if (grey == 0) return "";
  return absl::StrCat("coloured: the best of each family; dashed and black: the vendor's; grey: ",
                      grey, grey == 1 ? " other" : " others");
}

}  // namespace

std::string PlotSvg(absl::Span<const Row> rows, const Metadata& metadata,
                    const std::string& suite) {
  const std::vector<PlotLine> lines = PlotLines(rows);
  const std::string where = metadata.empty() ? "" : absl::StrCat(" on ", metadata.front().second);
  Chart chart{.title = absl::StrCat("TFLOPS over size", where),
              .below = {rows.empty() ? "" : WhatWasMeasured(rows, suite), WhatIsShown(lines)},
              .x_title = "size of the product: the cube root of M N K",
              .y_title = "TFLOPS"};
  for (const PlotLine& line : lines) {
    chart.curves.push_back({.name = line.name,
                            .label = line.label,
                            .baseline = line.baseline,
                            .highlighted = line.highlighted,
                            .points = line.tflops});
  }
  return ChartSvg(chart);
}

}  // namespace gemm::bench
