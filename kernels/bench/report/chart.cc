#include "kernels/bench/report/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "kernels/bench/report/plot_lines.h"
#include "kernels/bench/report/text_layout.h"

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
constexpr double kBarGap = 26;
constexpr double kFont = 12, kTitleFont = 16;
// The width of a letter, in sizes of the font: the largest mean width of common fonts.
constexpr double kLetter = 0.62;

double TextSpan(absl::string_view text, double font) {
  return static_cast<double>(TextWidth(text)) * kLetter * font;
}

// A round number at or above `value`: 1, 2 or 5 times a power of ten.
double RoundUp(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= value) return factor * power;
  }
  return 10 * power;
}

// From values to places in the picture.
struct Axes {
  bool logarithmic = true;   // of x
  double low = 1, high = 2;  // of x
  double step = 1, top = 1;  // y from tick to tick, and of the highest

  double X(double x) const {
    const double span = logarithmic ? std::log2(high / low) : high - low;
    const double place = logarithmic ? std::log2(x / low) : x - low;
    return kLeft + (span == 0 ? 0.5 : place / span) * kWidth;
  }
  double Y(double y) const { return kTop + (1 - y / top) * kHeight; }
};

Axes MakeAxes(const Chart& chart) {
  double highest = 0;
  Axes axes;
  axes.logarithmic = chart.logarithmic;
  axes.low = axes.high = chart.curves.front().points.begin()->first;
  for (const Curve& curve : chart.curves) {
    axes.low = std::min(axes.low, curve.points.begin()->first);
    axes.high = std::max(axes.high, curve.points.rbegin()->first);
    for (const auto& [x, y] : curve.points) highest = std::max(highest, y);
  }
  axes.step = highest > 0 ? RoundUp(highest / 6) : 1;
  axes.top = std::max(std::ceil(highest / axes.step), 1.0) * axes.step;
  return axes;
}

// Powers of two on a logarithmic axis, round numbers on another; the ends where there are none.
std::set<double> TicksOf(const Axes& axes) {
  std::set<double> ticks;
  if (axes.logarithmic) {
    for (double x = 1; x <= axes.high; x *= 2) {
      if (x >= axes.low) ticks.insert(x);
    }
  } else if (axes.high > axes.low) {
    const double step = RoundUp((axes.high - axes.low) / 8);
    for (double x = std::ceil(axes.low / step) * step; x <= axes.high; x += step) ticks.insert(x);
  }
  if (ticks.empty()) ticks = {axes.low, axes.high};
  return ticks;
}

struct TextStyle {
  const char* anchor = "start";
  double font = kFont;
  const char* fill = "#333333";
};

std::string Text(double x, double y, const TextStyle& style, absl::string_view text) {
  return absl::StrFormat(
      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%g\" fill=\"%s\">%s</text>\n", x,
      y, style.anchor, style.font, style.fill, EscapeMarkup(text));
}

std::string GridLine(double x1, double y1, double x2, double y2) {
  return absl::StrFormat(
      "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#e5e5e5\"/>\n", x1, y1, x2,
      y2);
}

std::string DrawAxes(const Axes& axes, const Chart& chart) {
  std::string svg;
  for (double y = 0; y <= axes.top * 1.001; y += axes.step) {
    const double place = axes.Y(y);
    absl::StrAppend(&svg, GridLine(kLeft, place, kLeft + kWidth, place),
                    Text(kLeft - 8, place + 4, {.anchor = "end"}, absl::StrFormat("%g", y)));
  }
  for (const double tick : TicksOf(axes)) {
    const double x = axes.X(tick);
    absl::StrAppend(
        &svg, GridLine(x, kTop, x, kTop + kHeight),
        Text(x, kTop + kHeight + 18, {.anchor = "middle"}, absl::StrFormat("%g", tick)));
  }
  absl::StrAppend(
      &svg, Text(kLeft + kWidth / 2, kTop + kHeight + 42, {.anchor = "middle"}, chart.x_title),
      absl::StrFormat("<text transform=\"translate(18 %.1f) rotate(-90)\" "
                      "text-anchor=\"middle\">%s</text>\n",
                      kTop + kHeight / 2, EscapeMarkup(chart.y_title)));
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

std::vector<Pen> Pens(const std::vector<Curve>& curves) {
  std::vector<Pen> pens;
  size_t kernels = 0, baselines = 0;
  for (const Curve& curve : curves) {
    Pen pen;
    if (curve.highlighted && curve.baseline) {
      pen = {.colour = kBaselineColour,
             .dashes = kBaselineDashes[baselines++ % kBaselineDashes.size()],
             .width = 1.6};
    } else if (curve.highlighted) {
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
std::string DrawLine(const Curve& curve, const Axes& axes, const Pen& pen) {
  std::string points, dots;
  const double radius = curve.highlighted ? 2.6 : 1.4;
  for (const auto& [at, value] : curve.points) {
    const double x = axes.X(at), y = axes.Y(value);
    absl::StrAppendFormat(&points, "%.1f,%.1f ", x, y);
    // A point by itself makes no line.
    if (!curve.highlighted && curve.points.size() > 1) continue;
    absl::StrAppendFormat(&dots, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%g\" fill=\"%s\"/>\n", x, y,
                          radius, pen.colour);
  }
  return absl::StrCat("<g><title>", EscapeMarkup(curve.name), "</title>\n<polyline points=\"",
                      points, "\" ", pen.Attributes(), "/>\n", dots, "</g>\n");
}

// From the end of the line over the margin to the label, which has the line's
// pen before it.
std::string DrawLabel(const Curve& curve, const Axes& axes, const Pen& pen, double y) {
  const auto& [at, value] = *curve.points.rbegin();
  const double swatch = kLeft + kWidth + kLeader;
  return absl::StrCat(
      absl::StrFormat("<polyline points=\"%.1f,%.1f %.1f,%.1f\" fill=\"none\" stroke=\"%s\" "
                      "stroke-width=\"0.7\" stroke-opacity=\"0.6\"/>\n",
                      axes.X(at) + 3, axes.Y(value), swatch, y, pen.colour),
      absl::StrFormat("<polyline points=\"%.1f,%.1f %.1f,%.1f\" %s/>\n", swatch, y,
                      swatch + kSwatch, y, pen.Attributes()),
      Text(swatch + kSwatch + 6, y + 4, {}, curve.label));
}

// A white picture with its title.
std::string Begin(double width, double height, const std::string& title) {
  const std::string text = EscapeMarkup(title);
  return absl::StrCat(
      absl::StrFormat(
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
          "height=\"%.0f\" font-family=\"sans-serif\" font-size=\"%g\" fill=\"#333333\">\n"
          "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
          width, height, width, height, kFont, text),
      Text(kLeft, 24, {.font = kTitleFont}, title));
}

}  // namespace

std::string EscapeMarkup(absl::string_view text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string ChartSvg(const Chart& chart) {
  const std::vector<Curve>& curves = chart.curves;
  double width = kLeft + std::max(kWidth, TextSpan(chart.title, kTitleFont)) + kMargin;
  for (const std::string& text : chart.below)
    width = std::max(width, kLeft + TextSpan(text, kFont) + kMargin);
  std::vector<double> wanted;
  std::string drawn;
  if (!curves.empty()) {
    const Axes axes = MakeAxes(chart);
    const std::vector<Pen> pens = Pens(curves);
    absl::StrAppend(&drawn, DrawAxes(axes, chart));
    // The first on top.
    for (size_t i = curves.size(); i-- > 0;)
      absl::StrAppend(&drawn, DrawLine(curves[i], axes, pens[i]));
    for (const Curve& curve : curves) {
      if (curve.highlighted) wanted.push_back(axes.Y(curve.points.rbegin()->second));
    }
    const std::vector<double> places = SpreadLabels(wanted, kLabelGap, kTop, kTop + kHeight);
    for (size_t i = 0; i < places.size(); ++i) {
      absl::StrAppend(&drawn, DrawLabel(curves[i], axes, pens[i], places[i]));
      width = std::max(width, kLeft + kWidth + kLeader + kSwatch + 6 +
                                  TextSpan(curves[i].label, kFont) + kMargin);
    }
  }
  const double height = kTop + kHeight + kBottom;
  std::string svg = Begin(width, height, chart.title);
  for (size_t i = 0; i < chart.below.size(); ++i) {
    absl::StrAppend(
        &svg, Text(kLeft, 43 + 16 * static_cast<double>(i), {.fill = "#666666"}, chart.below[i]));
  }
  return absl::StrCat(svg, drawn, "</svg>\n");
}

std::string BarsSvg(const BarChart& chart) {
  double longest = 0, left = kLeft;
  for (const Bar& bar : chart.bars) {
    longest = std::max(longest, std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0));
    left = std::max(left, TextSpan(bar.label, kFont) + kMargin);
  }
  const double scale = kWidth / std::max(longest, 1e-12);
  const double bottom = kTop + kBarGap * static_cast<double>(chart.bars.size());
  std::string svg = Begin(left + kWidth + kMargin, bottom + kBottom, chart.title);
  double legend = kLeft;
  for (size_t i = 0; i < chart.part_names.size(); ++i) {
    absl::StrAppendFormat(&svg,
                          "<rect x=\"%.1f\" y=\"40\" width=\"12\" height=\"12\" fill=\"%s\"/>\n",
                          legend, kColours[i % kColours.size()]);
    absl::StrAppend(&svg, Text(legend + 16, 50, {}, chart.part_names[i]));
    legend += 28 + TextSpan(chart.part_names[i], kFont);
  }
  for (size_t row = 0; row < chart.bars.size(); ++row) {
    const Bar& bar = chart.bars[row];
    const double y = kTop + kBarGap * static_cast<double>(row);
    absl::StrAppend(&svg, Text(left - 8, y + 14, {.anchor = "end"}, bar.label));
    double x = left;
    for (size_t i = 0; i < bar.parts.size(); ++i) {
      absl::StrAppendFormat(&svg,
                            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"18\" "
                            "fill=\"%s\"><title>%s: %.4g</title></rect>\n",
                            x, y, bar.parts[i] * scale, kColours[i % kColours.size()],
                            EscapeMarkup(chart.part_names[i]), bar.parts[i]);
      x += bar.parts[i] * scale;
    }
  }
  for (const double share : {0.0, 0.5, 1.0}) {
    absl::StrAppend(&svg, Text(left + share * kWidth, bottom + 18, {.anchor = "middle"},
                               absl::StrFormat("%.3g", share * longest)));
  }
  return absl::StrCat(
      svg, Text(left + kWidth / 2, bottom + 42, {.anchor = "middle"}, chart.x_title), "</svg>\n");
}

}  // namespace gemm::bench
