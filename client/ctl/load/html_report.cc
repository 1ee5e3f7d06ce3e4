#include "client/ctl/load/html_report.h"

#include <array>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/ctl/load/series.h"
#include "client/ctl/output/phases.h"
#include "kernels/bench/report/chart.h"

namespace gemmd::ctl {
namespace {

using gemm::bench::Bar;
using gemm::bench::BarChart;
using gemm::bench::Chart;
using gemm::bench::Curve;
using gemm::bench::EscapeMarkup;

constexpr std::array<std::pair<const char*, double>, 3> kDrawn = {
    {{"p99", 99}, {"p90", 90}, {"p50", 50}}};

// A plot without points is left out.
std::string Drawn(Chart chart) {
  std::vector<Curve> curves;
  for (Curve& curve : chart.curves) {
    if (!curve.points.empty()) curves.push_back(std::move(curve));
  }
  chart.curves = std::move(curves);
  return chart.curves.empty() ? "" : gemm::bench::ChartSvg(chart);
}

Curve Named(const char* name) { return {.name = name, .label = name}; }

std::string OverTime(const Series& series) {
  Chart latency{.title = "Latency over time",
                .x_title = "seconds since the end of the warm-up",
                .y_title = "ms",
                .logarithmic = false};
  for (const auto& [name, percentile] : kDrawn) latency.curves.push_back(Named(name));
  Chart rate{.title = "Requests over time",
             .x_title = latency.x_title,
             .y_title = "requests per second",
             .logarithmic = false,
             .curves = {Named("done"), Named("failed")}};
  const double seconds = absl::ToDoubleSeconds(series.length());
  for (size_t i = 0; i < series.windows().size(); ++i) {
    const Window& window = series.windows()[i];
    const double at = (static_cast<double>(i) + 0.5) * seconds;
    rate.curves[0].points[at] = static_cast<double>(window.done) / seconds;
    rate.curves[1].points[at] = static_cast<double>(window.failed) / seconds;
    if (window.latencies.empty()) continue;
    for (size_t curve = 0; curve < kDrawn.size(); ++curve) {
      latency.curves[curve].points[at] =
          absl::ToDoubleMilliseconds(PercentileOf(window, kDrawn[curve].second));
    }
  }
  return absl::StrCat(Drawn(std::move(latency)), Drawn(std::move(rate)));
}

std::string PhasesOfRows(const std::vector<LoadRow>& rows) {
  BarChart chart{.title = "Mean time in each phase on the server", .x_title = "ms"};
  // The total is not a part.
  for (size_t i = 0; i < kTotal; ++i) chart.part_names.emplace_back(kPhaseNames[i]);
  for (const LoadRow& row : rows) {
    if (row.tally.phases[kTotal].count() == 0) continue;
    Bar bar{.label = absl::StrCat(row.shape, " ", row.kernel)};
    for (size_t i = 0; i < kTotal; ++i) {
      bar.parts.push_back(absl::ToDoubleMilliseconds(row.tally.phases[i].mean()));
    }
    chart.bars.push_back(std::move(bar));
  }
  return chart.bars.empty() ? "" : gemm::bench::BarsSvg(chart);
}

std::string OverConcurrency(const std::vector<SweepPoint>& sweep) {
  Chart latency{.title = "Latency over concurrency", .x_title = "concurrency", .y_title = "ms"};
  for (const auto& [name, percentile] : kDrawn) latency.curves.push_back(Named(name));
  Chart rate{.title = "Requests over concurrency",
             .x_title = "concurrency",
             .y_title = "requests per second",
             .curves = {Named("succeeded")}};
  for (const SweepPoint& point : sweep) {
    const LoadResult& result = point.result;
    rate.curves[0].points[point.concurrency] =
        result.PerSecond(static_cast<double>(result.tally.succeeded));
    for (size_t curve = 0; curve < kDrawn.size(); ++curve) {
      latency.curves[curve].points[point.concurrency] =
          absl::ToDoubleMilliseconds(result.tally.latency.Percentile(kDrawn[curve].second));
    }
  }
  return absl::StrCat(Drawn(std::move(latency)), Drawn(std::move(rate)));
}

}  // namespace

std::string ToHtml(const HtmlReport& report) {
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<title>gemmctl loadtest</title>\n<style>body{font-family:sans-serif;"
      "margin:1em}svg{max-width:100%;height:auto;display:block}pre{overflow-x:auto}</style>\n"
      "</head><body>\n<h1>gemmctl loadtest</h1>\n<p><code>",
      EscapeMarkup(report.command_line), "</code></p>\n<p>", EscapeMarkup(report.server),
      "</p>\n<pre>", EscapeMarkup(report.tables), "</pre>\n");
  if (report.result != nullptr) {
    absl::StrAppend(&html, OverTime(report.result->series), PhasesOfRows(report.result->rows));
  }
  if (report.sweep != nullptr) absl::StrAppend(&html, OverConcurrency(*report.sweep));
  return absl::StrCat(html, "</body></html>\n");
}

}  // namespace gemmd::ctl
