// Curves, as a picture: of benchmarks and of load tests.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gemm::bench {

struct Curve {
  std::string name;   // shown where the pointer is
  std::string label;  // at its end
  bool baseline = false;
  // Drawn in a colour of its own and labelled.
  bool highlighted = true;
  std::map<double, double> points;  // y by x; at least one
};

struct Chart {
  std::string title;
  std::array<std::string, 2> below;  // lines under the title
  std::string x_title, y_title;
  bool logarithmic = true;  // the horizontal axis
  // Highlighted ones come first; the first is drawn on top.
  std::vector<Curve> curves;
};

// An SVG document. Highlighted curves are coloured and labelled at their ends, baselines are black
// and dashed, the rest is thin and grey. The vertical axis begins at 0.
std::string ChartSvg(const Chart& chart);

// A bar of parts that follow each other, such as the phases of a request.
struct Bar {
  std::string label;
  std::vector<double> parts;  // as many as the names of the parts
};

struct BarChart {
  std::string title;
  std::string x_title;
  std::vector<std::string> part_names;
  std::vector<Bar> bars;
};

// An SVG document with a bar a line, and a legend of the parts below the title.
std::string BarsSvg(const BarChart& chart);

// Text of a document, with the characters of its markup escaped.
std::string EscapeMarkup(absl::string_view text);

}  // namespace gemm::bench
