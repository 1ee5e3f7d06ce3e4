#include "kernels/bench/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "kernels/bench/statistics.h"
#include "kernels/bench/summary.h"
#include "kernels/bench/types_pattern.h"

namespace gemm::bench {
namespace {

constexpr size_t kMostLines = 12;
// Told apart by most people, after Paul Tol's "bright" and "muted" schemes.
constexpr std::array<const char*, kMostLines> kColours = {
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377",
    "#332288", "#999933", "#117733", "#cc6677", "#882255", "#777777"};

// In the picture's units.
constexpr double kLeft = 70, kTop = 50, kWidth = 640, kHeight = 420, kLegend = 24;

struct Line {
  std::string name;
  bool peer = false;
  std::map<double, std::vector<double>> tflops;  // by the edge of the cube
};

std::string NameOf(const KernelMeans& means) {
  return absl::StrCat(means.kernel, means.params.empty() ? "" : " ", means.params, " ",
                      TypesName(means.types), " ", LayoutName(means.layout));
}

std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

// The names of the kernels to show.
std::set<std::string> Chosen(absl::Span<const Row> rows, std::vector<KernelMeans> kernels) {
  std::set<std::string> chosen;
  const auto choose = [&](const KernelMeans& means) {
    if (chosen.size() < kMostLines) chosen.insert(NameOf(means));
  };
  for (const KernelMeans& means : kernels) {
    if (means.peer) choose(means);
  }
  for (const FamilyMeans& family : SummariseFamilies(rows)) choose(family.best);
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto& x, const auto& y) { return x.tflops > y.tflops; });
  for (const KernelMeans& means : kernels) choose(means);
  return chosen;
}

std::vector<Line> CollectLines(absl::Span<const Row> rows, const std::vector<KernelMeans>& kernels,
                               const std::set<std::string>& chosen) {
  std::vector<Line> lines;
  for (const KernelMeans& means : kernels) {
    if (chosen.count(NameOf(means)) == 0) continue;
    Line line = {.name = NameOf(means), .peer = means.peer};
    for (const Row& row : rows) {
      const bool same = row.kernel == means.kernel && row.types == means.types &&
                        row.layout == means.layout && row.params == means.params;
      if (same && row.measured) line.tflops[std::round(CubeEdge(row.shape))].push_back(row.tflops);
    }
    if (!line.tflops.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

// A round number at or above `value`: 1, 2 or 5 times a power of ten.
double RoundUp(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= value) return factor * power;
  }
  return 10 * power;
}

// From TFLOPS and sizes to places in the picture.
struct Axes {
  double low = 1, high = 2;  // sizes
  double step = 1, top = 1;  // TFLOPS from tick to tick, and of the highest

  double X(double size) const {
    const double span = std::log2(high / low);
    return kLeft + (span == 0 ? 0.5 : std::log2(size / low) / span) * kWidth;
  }
  double Y(double tflops) const { return kTop + (1 - tflops / top) * kHeight; }
};

Axes MakeAxes(const std::vector<Line>& lines) {
  double highest = 0;
  Axes axes;
  axes.low = axes.high = lines.front().tflops.begin()->first;
  for (const Line& line : lines) {
    axes.low = std::min(axes.low, line.tflops.begin()->first);
    axes.high = std::max(axes.high, line.tflops.rbegin()->first);
    for (const auto& [size, values] : line.tflops) {
      highest = std::max(highest, GeometricMean(values));
    }
  }
  axes.step = RoundUp(highest / 6);
  axes.top = std::ceil(highest / axes.step) * axes.step;
  return axes;
}

std::string Text(double x, double y, absl::string_view anchor, const std::string& text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor,
                         Escape(text));
}

std::string GridLine(double x1, double y1, double x2, double y2) {
  return absl::StrFormat(
      "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", x1, y1, x2, y2);
}

std::string DrawAxes(const Axes& axes) {
  std::string svg;
  for (double tflops = 0; tflops <= axes.top * 1.001; tflops += axes.step) {
    const double y = axes.Y(tflops);
    absl::StrAppend(&svg, GridLine(kLeft, y, kLeft + kWidth, y),
                    Text(kLeft - 8, y + 4, "end", absl::StrFormat("%g", tflops)));
  }
  // Powers of two, and the ends where there are none.
  std::set<double> ticks;
  for (double size = 1; size <= axes.high; size *= 2) {
    if (size >= axes.low) ticks.insert(size);
  }
  if (ticks.empty()) ticks = {axes.low, axes.high};
  for (const double size : ticks) {
    const double x = axes.X(size);
    absl::StrAppend(&svg, GridLine(x, kTop, x, kTop + kHeight),
                    Text(x, kTop + kHeight + 18, "middle", absl::StrFormat("%g", size)));
  }
  absl::StrAppend(&svg,
                  Text(kLeft + kWidth / 2, kTop + kHeight + 40, "middle", "cube root of M N K"),
                  absl::StrFormat("<text transform=\"translate(18 %.1f) rotate(-90)\" "
                                  "text-anchor=\"middle\">TFLOPS</text>\n",
                                  kTop + kHeight / 2));
  return svg;
}

std::string DrawLine(const Line& line, const Axes& axes, const char* colour, double legend_y) {
  const char* const dashes = line.peer ? " stroke-dasharray=\"6 4\"" : "";
  std::string points, dots;
  for (const auto& [size, values] : line.tflops) {
    const double x = axes.X(size), y = axes.Y(GeometricMean(values));
    absl::StrAppendFormat(&points, "%.1f,%.1f ", x, y);
    absl::StrAppendFormat(&dots, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"/>\n", x, y,
                          colour);
  }
  const double legend_x = kLeft + kWidth + 24;
  return absl::StrCat(
      absl::StrFormat("<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.6\"%s/>"
                      "\n",
                      points, colour, dashes),
      dots,
      absl::StrFormat("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                      "stroke-width=\"2.5\"%s/>\n",
                      legend_x, legend_y - 4, legend_x + 24, legend_y - 4, colour, dashes),
      Text(legend_x + 32, legend_y, "start", line.name));
}

}  // namespace

std::string PlotSvg(absl::Span<const Row> rows, const std::string& title) {
  const std::vector<KernelMeans> kernels = SummariseKernels(rows);
  const std::vector<Line> lines = CollectLines(rows, kernels, Chosen(rows, kernels));
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" "
      "font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kLeft + kWidth + 560, kTop + kHeight + 60);
  absl::StrAppend(&svg, Text(kLeft, kTop - 22, "start", title));
  if (!lines.empty()) {
    const Axes axes = MakeAxes(lines);
    absl::StrAppend(&svg, DrawAxes(axes));
    double legend_y = kTop + 12;
    for (size_t i = 0; i < lines.size(); ++i) {
      absl::StrAppend(&svg, DrawLine(lines[i], axes, kColours[i % kMostLines], legend_y));
      legend_y += kLegend;
    }
    const size_t left_out = kernels.size() - lines.size();
    if (left_out > 0) {
      absl::StrAppend(&svg, Text(kLeft + kWidth + 24, legend_y, "start",
                                 absl::StrCat("and ", left_out, " more kernels")));
    }
  }
  return absl::StrCat(svg, "</svg>\n");
}

}  // namespace gemm::bench
