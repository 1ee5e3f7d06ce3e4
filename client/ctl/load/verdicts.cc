#include "client/ctl/load/verdicts.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/output/format.h"
#include "client/ctl/output/table.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

const char* HeldText(bool held) { return held ? "held" : "broken"; }

std::string FindingsText(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", finding.objective, ": ", finding.measured);
  }
  return text;
}

}  // namespace

void PrintFindings(std::ostream& out, const std::vector<Finding>& findings, size_t width) {
  Table table({{"objective"}, {"measured", Align::kRight}, {"verdict"}});
  for (const Finding& finding : findings) {
    table.Add({finding.objective, finding.measured, HeldText(finding.held)});
  }
  table.Print(out, width);
}

void PrintSearch(std::ostream& out, const RateSearch& search, size_t width) {
  Table table({{"rate/s", Align::kRight}, {"verdict"}, {"measured", Align::kLeft, Fit::kWrap}});
  for (const RateTrial& trial : search.trials) {
    table.Add({NumberText(trial.rate), HeldText(trial.held), FindingsText(trial.findings)});
  }
  table.Print(out, width);
  out << '\n';
  if (search.highest == 0) {
    out << "no rate held\n";
    return;
  }
  out << "highest rate that held: " << NumberText(search.highest) << "/s";
  if (search.lowest_broken.has_value()) {
    out << "; lowest that did not: " << NumberText(*search.lowest_broken) << "/s";
  }
  out << '\n';
}

void PrintSweep(std::ostream& out, const std::vector<SweepPoint>& sweep, size_t width) {
  Table table({{"concurrency", Align::kRight},
               {"requests/s", Align::kRight},
               {"TFLOPS", Align::kRight, Fit::kDrop},
               {"p50 ms", Align::kRight},
               {"p90 ms", Align::kRight, Fit::kDrop},
               {"p99 ms", Align::kRight},
               {"failed", Align::kRight},
               {"slo"}});
  for (const SweepPoint& point : sweep) {
    const LoadResult& result = point.result;
    const Histogram& latency = result.tally.latency;
    table.Add({absl::StrCat(point.concurrency),
               NumberText(result.PerSecond(static_cast<double>(result.tally.succeeded))),
               NumberText(result.PerSecond(result.tally.flops) / 1e12),
               MillisecondsText(latency.Percentile(50)), MillisecondsText(latency.Percentile(90)),
               MillisecondsText(latency.Percentile(99)), absl::StrCat(result.tally.failed),
               point.findings.empty() ? "" : HeldText(IsHeld(point.findings))});
  }
  table.Print(out, width);
}

void PrintComparison(std::ostream& out, const std::vector<Comparison>& rows, const std::string& by,
                     size_t width) {
  Table table({{"figure"},
               {"before", Align::kRight},
               {"after", Align::kRight},
               {"ratio", Align::kRight},
               {"95% interval", Align::kRight},
               {"verdict"}});
  for (const Comparison& row : rows) {
    const auto text = [&](double value) {
      return row.figure == "rate" ? absl::StrCat(NumberText(value), "/s")
                                  : DurationText(absl::Seconds(value));
    };
    table.Add({row.figure, text(row.before), text(row.after), absl::StrFormat("%.3f", row.ratio),
               absl::StrFormat("%.3f to %.3f", row.low, row.high), Name(row.verdict)});
  }
  table.Print(out, width);
  out << "\nverdict by " << by << ": " << Name(VerdictBy(rows, by)) << '\n';
}

CompareVerdict VerdictBy(const std::vector<Comparison>& rows, const std::string& by) {
  for (const Comparison& row : rows) {
    if (row.figure == by) return row.verdict;
  }
  return CompareVerdict::kUnclear;
}

Json ToJson(const std::vector<Finding>& findings) {
  Json json = Json::array();
  for (const Finding& finding : findings) {
    json.push_back(
        {{"objective", finding.objective}, {"measured", finding.measured}, {"held", finding.held}});
  }
  return json;
}

Json ToJson(const RateSearch& search) {
  Json trials = Json::array();
  for (const RateTrial& trial : search.trials) {
    trials.push_back({{"rate_per_second", trial.rate},
                      {"held", trial.held},
                      {"findings", ToJson(trial.findings)}});
  }
  return {{"highest_rate_per_second", search.highest},
          {"lowest_broken_per_second",
           search.lowest_broken.has_value() ? Json(*search.lowest_broken) : Json()},
          {"trials", trials}};
}

Json ToJson(const std::vector<SweepPoint>& sweep) {
  Json json = Json::array();
  for (const SweepPoint& point : sweep) {
    json.push_back({{"concurrency", point.concurrency},
                    {"result", ToJson(point.result)},
                    {"slo", ToJson(point.findings)}});
  }
  return json;
}

std::string ToCsv(const std::vector<SweepPoint>& sweep) {
  std::string csv =
      "concurrency,requests_per_second,tflops,p50_seconds,p90_seconds,p99_seconds,failed\n";
  for (const SweepPoint& point : sweep) {
    const LoadResult& result = point.result;
    absl::StrAppend(&csv, point.concurrency, ",",
                    result.PerSecond(static_cast<double>(result.tally.succeeded)), ",",
                    result.PerSecond(result.tally.flops) / 1e12);
    for (const double percentile : {50.0, 90.0, 99.0}) {
      absl::StrAppend(&csv, ",",
                      absl::ToDoubleSeconds(result.tally.latency.Percentile(percentile)));
    }
    absl::StrAppend(&csv, ",", result.tally.failed, "\n");
  }
  return csv;
}

Json ToJson(const std::vector<Comparison>& rows, const std::string& by) {
  Json figures = Json::array();
  for (const Comparison& row : rows) {
    figures.push_back({{"figure", row.figure},
                       {"before", row.before},
                       {"after", row.after},
                       {"ratio", row.ratio},
                       {"low", row.low},
                       {"high", row.high},
                       {"verdict", Name(row.verdict)}});
  }
  return {{"by", by}, {"verdict", Name(VerdictBy(rows, by))}, {"figures", figures}};
}

}  // namespace gemmd::ctl
