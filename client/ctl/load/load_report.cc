#include "client/ctl/load/load_report.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/load/compare.h"
#include "client/ctl/output/format.h"
#include "client/ctl/output/table.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

constexpr std::array<std::pair<const char*, double>, 5> kPercentiles = {
    {{"p50", 50}, {"p90", 90}, {"p95", 95}, {"p99", 99}, {"p99.9", 99.9}}};

constexpr const char* kNothing = "-";

// Without a value, a percentile is null and not 0.
Json LatencyJson(const Histogram& histogram) {
  const auto seconds = [&](absl::Duration value) {
    return histogram.count() == 0 ? Json() : Json(absl::ToDoubleSeconds(value));
  };
  Json json = {{"count", histogram.count()}};
  for (const auto& [name, percentile] : kPercentiles) {
    json[name] = seconds(histogram.Percentile(percentile));
  }
  json["min"] = seconds(histogram.min());
  json["max"] = seconds(histogram.max());
  json["mean"] = seconds(histogram.mean());
  return json;
}

void PrintTimes(std::ostream& out, const std::string& title, const Tally& tally, size_t width) {
  Table table({{title},
               {"p50", Align::kRight},
               {"p90", Align::kRight, Fit::kDrop},
               {"p95", Align::kRight, Fit::kDrop},
               {"p99", Align::kRight},
               {"p99.9", Align::kRight},
               {"max", Align::kRight},
               {"mean", Align::kRight, Fit::kDrop}});
  const auto add = [&table](const std::string& name, const Histogram& histogram) {
    const auto text = [&](absl::Duration value) {
      return histogram.count() == 0 ? std::string(kNothing) : MillisecondsText(value);
    };
    std::vector<std::string> cells = {name};
    for (const auto& [title, percentile] : kPercentiles) {
      cells.push_back(text(histogram.Percentile(percentile)));
    }
    cells.push_back(text(histogram.max()));
    cells.push_back(text(histogram.mean()));
    table.Add(std::move(cells));
  };
  add("latency", tally.latency);
  for (size_t i = 0; i < kPhaseCount; ++i) {
    add(absl::StrCat("server ", kPhaseNames[i]), tally.phases[i]);
  }
  table.Print(out, width);
}

}  // namespace

std::string ToCsv(const LoadResult& result) {
  std::string csv = "kind,shape,kernel,phase,start_seconds,done,failed,per_second";
  for (const auto& [name, percentile] : kPercentiles) absl::StrAppend(&csv, ",", name, "_seconds");
  absl::StrAppend(&csv, ",max_seconds,mean_seconds\n");
  const auto add = [&](const LoadRow& row, const char* phase, const Histogram& histogram) {
    absl::StrAppend(&csv, "row,", row.shape, ",", row.kernel, ",", phase, ",,", histogram.count(),
                    ",", row.tally.failed, ",",
                    result.PerSecond(static_cast<double>(histogram.count())));
    const auto append = [&](absl::Duration value) {
      absl::StrAppend(&csv, ",");
      if (histogram.count() > 0) absl::StrAppend(&csv, absl::ToDoubleSeconds(value));
    };
    for (const auto& [name, percentile] : kPercentiles) append(histogram.Percentile(percentile));
    append(histogram.max());
    append(histogram.mean());
    absl::StrAppend(&csv, "\n");
  };
  for (const LoadRow& row : result.rows) {
    add(row, "latency", row.tally.latency);
    for (size_t i = 0; i < kPhaseCount; ++i) add(row, kPhaseNames[i], row.tally.phases[i]);
  }
  const double seconds = absl::ToDoubleSeconds(result.series.length());
  for (size_t i = 0; i < result.series.windows().size(); ++i) {
    const Window& window = result.series.windows()[i];
    absl::StrAppend(&csv, "window,,,latency,", static_cast<double>(i) * seconds, ",", window.done,
                    ",", window.failed, ",", static_cast<double>(window.done) / seconds);
    for (const auto& [name, percentile] : kPercentiles) {
      absl::StrAppend(&csv, ",");
      if (window.latencies.empty()) continue;
      absl::StrAppend(&csv, absl::ToDoubleSeconds(PercentileOf(window, percentile)));
    }
    absl::StrAppend(&csv, ",,\n");
  }
  return csv;
}

double LoadResult::PerSecond(double amount) const {
  return wall > absl::ZeroDuration() ? amount / absl::ToDoubleSeconds(wall) : 0;
}

std::string LiveLine(absl::Duration elapsed, absl::Duration since_last, const Interval& interval,
                     uint64_t failed) {
  const double seconds = absl::ToDoubleSeconds(since_last);
  const auto text = [&](double percentile) {
    return interval.latency.count() == 0 ? std::string(kNothing)
                                         : DurationText(interval.latency.Percentile(percentile));
  };
  const double rate = seconds > 0 ? static_cast<double>(interval.done) / seconds : 0;
  return absl::StrFormat("%5.0f s  done %-7d %8s/s  p50 %-9s p99 %-9s errors %d",
                         absl::ToDoubleSeconds(elapsed), interval.done, NumberText(rate), text(50),
                         text(99), failed);
}

void PrintLoadTable(std::ostream& out, const LoadResult& result, size_t width) {
  const Tally& tally = result.tally;
  Table summary = SummaryTable();
  summary.Add(
      {"requests", absl::StrCat(tally.succeeded + tally.failed, " in ", DurationText(result.wall),
                                result.interrupted ? ", ended early" : "")});
  summary.Add({"succeeded", absl::StrCat(tally.succeeded)});
  summary.Add({"failed", absl::StrCat(tally.failed)});
  for (const auto& [code, errors] : tally.errors) {
    summary.Add({absl::StrCat("  ", code), absl::StrCat(errors.count, ", first: ", errors.first)});
  }
  if (tally.verified > 0) {
    summary.Add({"verified", absl::StrCat(tally.verified, ", wrong: ", tally.wrong)});
    if (tally.wrong > 0) summary.Add({"  first wrong", tally.first_wrong});
  }
  summary.Add({"requests/s", NumberText(result.PerSecond(static_cast<double>(tally.succeeded)))});
  if (result.products > 1) summary.Add({"products/s", NumberText(result.ProductsPerSecond())});
  summary.Add({"TFLOPS", NumberText(result.PerSecond(tally.flops) / 1e12)});
  summary.Add({"sent/s", BytesText(result.PerSecond(static_cast<double>(tally.bytes_sent)))});
  summary.Add(
      {"received/s", BytesText(result.PerSecond(static_cast<double>(tally.bytes_received)))});
  summary.Print(out, width);
  out << '\n';
  PrintTimes(out, "ms", tally, width);
  if (result.rows.size() < 2) return;
  for (const LoadRow& row : result.rows) {
    out << '\n'
        << row.shape << ' ' << row.kernel << ": " << row.tally.succeeded << " succeeded, "
        << row.tally.failed << " failed, " << NumberText(result.PerSecond(row.tally.flops) / 1e12)
        << " TFLOPS\n";
    PrintTimes(out, "ms", row.tally, width);
  }
}

Json ToJson(const LoadResult& result) {
  const Tally& tally = result.tally;
  Json errors = Json::object();
  for (const auto& [code, sum] : tally.errors) {
    errors[code] = {{"count", sum.count}, {"first", sum.first}};
  }
  Json phases = Json::object();
  for (size_t i = 0; i < kPhaseCount; ++i) phases[kPhaseNames[i]] = LatencyJson(tally.phases[i]);
  Json rows = Json::array();
  for (const LoadRow& row : result.rows) {
    Json of_row = Json::object();
    for (size_t i = 0; i < kPhaseCount; ++i) {
      of_row[kPhaseNames[i]] = LatencyJson(row.tally.phases[i]);
    }
    rows.push_back({{"shape", row.shape},
                    {"kernel", row.kernel},
                    {"succeeded", row.tally.succeeded},
                    {"failed", row.tally.failed},
                    {"tflops", result.PerSecond(row.tally.flops) / 1e12},
                    {"latency_seconds", LatencyJson(row.tally.latency)},
                    {"server_phase_seconds", of_row}});
  }
  Json verification = {{"checked", tally.verified}, {"wrong", tally.wrong}};
  if (tally.wrong > 0) verification["first_wrong"] = tally.first_wrong;
  return {
      {"interrupted", result.interrupted},
      {"wall_seconds", absl::ToDoubleSeconds(result.wall)},
      {"requests", tally.succeeded + tally.failed},
      {"succeeded", tally.succeeded},
      {"failed", tally.failed},
      {"errors", errors},
      {"requests_per_second", result.PerSecond(static_cast<double>(tally.succeeded))},
      {"products_per_second", result.ProductsPerSecond()},
      {"tflops", result.PerSecond(tally.flops) / 1e12},
      {"bytes_sent_per_second", result.PerSecond(static_cast<double>(tally.bytes_sent))},
      {"bytes_received_per_second", result.PerSecond(static_cast<double>(tally.bytes_received))},
      {"latency_seconds", LatencyJson(tally.latency)},
      {"server_phase_seconds", phases},
      {"verification", verification},
      {"rows", rows},
      {"series", ToJson(result.series)}};
}

}  // namespace gemmd::ctl
