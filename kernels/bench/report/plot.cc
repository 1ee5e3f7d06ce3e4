#include "kernels/bench/report/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "kernels/bench/report/plot_lines.h"
#include "kernels/bench/report/text_layout.h"
#include "kernels/bench/spec/selection.h"

namespace gemm::bench {
namespace {

// Colour-blind readers can distinguish these, after M. Okabe and K. Ito, "Color Universal
// Design" (2008). The yellow is left out, since it is faint on white. Black is for
// baselines.
constexpr std::array<const char*, 6> kColours = {"#0072b2", "#d55e00", "#009e73",
                                                 "#cc79a7", "#e69f00", "#56b4e9"};
constexpr const char* kBaselineColour = "#000000";
constexpr const char* kOtherColour = "#bbbbbb";
// Dashes for the second use of each colour, and for each baseline in turn.
constexpr const char* kSecondDashes = "2 3";
constexpr std::array<const char*, 3> kBaselineDashes = {"7 4", "2 3", "9 3 2 3"};

// In the picture's units.
constexpr double kLeft = 70, kTop = 76, kWidth = 640, kHeight = 420, kBottom = 56;
constexpr double kLeader = 24, kSwatch = 22, kMargin = 16, kLabelGap = 15;
constexpr double kFont = 12, kTitleFont = 16;
// The width of a letter, in sizes of the font: the largest mean width of common fonts.
constexpr double kLetter = 0.62;

double TextSpan(absl::string_view text, double font) {
  return static_cast<double>(TextWidth(text)) * kLetter * font;
}

std::string Escape(absl::string_view text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
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

Axes MakeAxes(const std::vector<PlotLine>& lines) {
  double highest = 0;
  Axes axes;
  axes.low = axes.high = lines.front().tflops.begin()->first;
  for (const PlotLine& line : lines) {
    axes.low = std::min(axes.low, line.tflops.begin()->first);
    axes.high = std::max(axes.high, line.tflops.rbegin()->first);
    for (const auto& [size, tflops] : line.tflops) highest = std::max(highest, tflops);
  }
  axes.step = RoundUp(highest / 6);
  axes.top = std::ceil(highest / axes.step) * axes.step;
  return axes;
}

struct TextStyle {
  const char* anchor = "start";
  double font = kFont;
  const char* fill = "#333333";
};

std::string Text(double x, double y, const TextStyle& style, absl::string_view text) {
  return absl::StrFormat(
      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%g\" fill=\"%s\">%s</text>\n", x,
      y, style.anchor, style.font, style.fill, Escape(text));
}

std::string GridLine(double x1, double y1, double x2, double y2) {
  return absl::StrFormat(
      "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#e5e5e5\"/>\n", x1, y1, x2,
      y2);
}

std::string DrawAxes(const Axes& axes) {
  std::string svg;
  for (double tflops = 0; tflops <= axes.top * 1.001; tflops += axes.step) {
    const double y = axes.Y(tflops);
    absl::StrAppend(&svg, GridLine(kLeft, y, kLeft + kWidth, y),
                    Text(kLeft - 8, y + 4, {.anchor = "end"}, absl::StrFormat("%g", tflops)));
  }
  // Powers of two, and the ends where there are none.
  std::set<double> ticks;
  for (double size = 1; size <= axes.high; size *= 2) {
    if (size >= axes.low) ticks.insert(size);
  }
  if (ticks.empty()) ticks = {axes.low, axes.high};
  for (const double size : ticks) {
    const double x = axes.X(size);
    absl::StrAppend(
        &svg, GridLine(x, kTop, x, kTop + kHeight),
        Text(x, kTop + kHeight + 18, {.anchor = "middle"}, absl::StrFormat("%g", size)));
  }
  absl::StrAppend(&svg,
                  Text(kLeft + kWidth / 2, kTop + kHeight + 42, {.anchor = "middle"},
                       "size of the product: the cube root of M N K"),
                  absl::StrFormat("<text transform=\"translate(18 %.1f) rotate(-90)\" "
                                  "text-anchor=\"middle\">TFLOPS</text>\n",
                                  kTop + kHeight / 2));
  return svg;
}

// How a line is drawn.
struct Pen {
  const char* colour = kOtherColour;
  const char* dashes = "";
  double width = 0.8;

  std::string Attributes() const {
    return absl::StrFormat(
        "fill=\"none\" stroke=\"%s\" stroke-width=\"%g\"%s", colour, width,
        *dashes == '\0' ? "" : absl::StrCat(" stroke-dasharray=\"", dashes, "\""));
  }
};

std::vector<Pen> Pens(const std::vector<PlotLine>& lines) {
  std::vector<Pen> pens;
  size_t kernels = 0, baselines = 0;
  for (const PlotLine& line : lines) {
    Pen pen;
    if (line.highlighted && line.baseline) {
      pen = {.colour = kBaselineColour,
             .dashes = kBaselineDashes[baselines++ % kBaselineDashes.size()],
             .width = 1.6};
    } else if (line.highlighted) {
      const bool again = kernels / kColours.size() % 2 == 1;
      pen = {.colour = kColours[kernels++ % kColours.size()],
             .dashes = again ? kSecondDashes : "",
             .width = 2};
    }
    pens.push_back(pen);
  }
  return pens;
}

// The name shows where the pointer is on the line.
std::string DrawLine(const PlotLine& line, const Axes& axes, const Pen& pen) {
  std::string points, dots;
  const double radius = line.highlighted ? 2.6 : 1.4;
  for (const auto& [size, tflops] : line.tflops) {
    const double x = axes.X(size), y = axes.Y(tflops);
    absl::StrAppendFormat(&points, "%.1f,%.1f ", x, y);
    // A point by itself makes no line.
    if (!line.highlighted && line.tflops.size() > 1) continue;
    absl::StrAppendFormat(&dots, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%g\" fill=\"%s\"/>\n", x, y,
                          radius, pen.colour);
  }
  return absl::StrCat("<g><title>", Escape(line.name), "</title>\n<polyline points=\"", points,
                      "\" ", pen.Attributes(), "/>\n", dots, "</g>\n");
}

// From the end of the line over the margin to the label, which has the line's
// pen before it.
std::string DrawLabel(const PlotLine& line, const Axes& axes, const Pen& pen, double y) {
  const auto& [size, tflops] = *line.tflops.rbegin();
  const double swatch = kLeft + kWidth + kLeader;
  return absl::StrCat(
      absl::StrFormat("<polyline points=\"%.1f,%.1f %.1f,%.1f\" fill=\"none\" stroke=\"%s\" "
                      "stroke-width=\"0.7\" stroke-opacity=\"0.6\"/>\n",
                      axes.X(size) + 3, axes.Y(tflops), swatch, y, pen.colour),
      absl::StrFormat("<polyline points=\"%.1f,%.1f %.1f,%.1f\" %s/>\n", swatch, y,
                      swatch + kSwatch, y, pen.Attributes()),
      Text(swatch + kSwatch + 6, y + 4, {}, line.label));
}

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
  const std::string title = absl::StrCat("TFLOPS over size", where);
  const std::array<std::string, 2> below = {rows.empty() ? "" : WhatWasMeasured(rows, suite),
                                            WhatIsShown(lines)};
  double width = kLeft + std::max(kWidth, TextSpan(title, kTitleFont)) + kMargin;
  for (const std::string& text : below)
    width = std::max(width, kLeft + TextSpan(text, kFont) + kMargin);
  std::vector<double> wanted;
  std::string drawn;
  if (!lines.empty()) {
    const Axes axes = MakeAxes(lines);
    const std::vector<Pen> pens = Pens(lines);
    absl::StrAppend(&drawn, DrawAxes(axes));
    // The best on top.
    for (size_t i = lines.size(); i-- > 0;)
      absl::StrAppend(&drawn, DrawLine(lines[i], axes, pens[i]));
    for (const PlotLine& line : lines) {
      if (line.highlighted) wanted.push_back(axes.Y(line.tflops.rbegin()->second));
    }
    const std::vector<double> places = SpreadLabels(wanted, kLabelGap, kTop, kTop + kHeight);
    for (size_t i = 0; i < places.size(); ++i) {
      absl::StrAppend(&drawn, DrawLabel(lines[i], axes, pens[i], places[i]));
      width = std::max(width, kLeft + kWidth + kLeader + kSwatch + 6 +
                                  TextSpan(lines[i].label, kFont) + kMargin);
    }
  }
  const double height = kTop + kHeight + kBottom;
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
      "height=\"%.0f\" font-family=\"sans-serif\" font-size=\"%g\" fill=\"#333333\">\n"
      "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      width, height, width, height, kFont, Escape(title));
  absl::StrAppend(&svg, Text(kLeft, 24, {.font = kTitleFont}, title));
  for (size_t i = 0; i < below.size(); ++i) {
    absl::StrAppend(&svg,
                    Text(kLeft, 43 + 16 * static_cast<double>(i), {.fill = "#666666"}, below[i]));
  }
  return absl::StrCat(svg, drawn, "</svg>\n");
}

}  // namespace gemm::bench
