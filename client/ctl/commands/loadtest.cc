// gemmctl loadtest: runs many products at once or at a rate, and times them.
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/load/compare.h"
#include "client/ctl/load/find_rate.h"
#include "client/ctl/load/html_report.h"
#include "client/ctl/load/load_options.h"
#include "client/ctl/load/load_report.h"
#include "client/ctl/load/session.h"
#include "client/ctl/load/slo.h"
#include "client/ctl/load/verdicts.h"
#include "client/ctl/output/format.h"
#include "client/ctl/output/render.h"
#include "client/ctl/parsing/cli_options.h"
#include "files/output_file.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

// What a load test found, by its mode.
struct Findings {
  std::optional<LoadResult> result;  // absent for a search and a sweep
  std::vector<Finding> slo;
  std::optional<RateSearch> search;
  std::vector<SweepPoint> sweep;
  std::vector<Comparison> comparison;
};

// All requests of a test as one window.
Window Together(const LoadResult& result) {
  Window all;
  for (const Window& window : result.series.windows()) all.Merge(window);
  return all;
}

RateSearch Search(const LoadOptions& options, LoadSession& session, std::ostream& err) {
  return FindRate(options.slo, options.rate, [&](double rate) -> TrialParts {
    err << "gemmctl: tries " << NumberText(rate) << " requests/s\n";
    const LoadResult result = session.Measure(rate, options.concurrency);
    if (result.interrupted) return {};
    return PartsOf(result.series, options.duration);
  });
}

std::vector<SweepPoint> Sweep(const LoadOptions& options, LoadSession& session, std::ostream& err) {
  std::vector<SweepPoint> sweep;
  for (const int concurrency : options.sweep) {
    err << "gemmctl: concurrency " << concurrency << '\n';
    SweepPoint point{.concurrency = concurrency, .result = session.Measure(0, concurrency)};
    point.findings = Judge(options.slo, Together(point.result), point.result.wall);
    const bool interrupted = point.result.interrupted;
    sweep.push_back(std::move(point));
    if (interrupted) break;
  }
  return sweep;
}

absl::StatusOr<Findings> RunTest(const Context& context, const LoadOptions& options,
                                 LoadSession& session, const std::optional<Series>& before) {
  Findings found;
  if (options.find_rate) {
    found.search = Search(options, session, context.err);
    return found;
  }
  if (!options.sweep.empty()) {
    found.sweep = Sweep(options, session, context.err);
    return found;
  }
  found.result = session.Measure(options.rate, options.concurrency);
  found.slo = Judge(options.slo, Together(*found.result), found.result->wall);
  if (before.has_value()) {
    auto comparison = Compare(*before, found.result->series, options.tolerance);
    if (!comparison.ok()) return comparison.status();
    found.comparison = *std::move(comparison);
  }
  return found;
}

int ExitCodeOf(const LoadOptions& options, const Findings& found) {
  std::vector<const LoadResult*> results;
  if (found.result.has_value()) results.push_back(&*found.result);
  for (const SweepPoint& point : found.sweep) results.push_back(&point.result);
  bool broken = !IsHeld(found.slo);
  bool failed = false;
  for (const LoadResult* result : results) {
    if (result->tally.wrong > 0) return kExitWrongProduct;
    failed = failed || result->tally.failed > 0;
  }
  for (const SweepPoint& point : found.sweep) broken = broken || !IsHeld(point.findings);
  if (found.search.has_value()) broken = found.search->highest == 0;
  if (!found.comparison.empty()) {
    broken = broken || VerdictBy(found.comparison, options.compare_by) == CompareVerdict::kSlower;
  }
  if (broken) return kExitVerdict;
  // With objectives they alone say how many errors are too many.
  return failed && options.slo.empty() ? kExitFailed : kExitOk;
}

Json DocumentOf(const Context& context, const LoadOptions& options, const LoadSession& session,
                const Findings& found) {
  Json configuration = ToJson(options);
  configuration["address"] = context.global.address;
  configuration["channels"] = context.global.channels;
  Json json = {{"client_version", ClientVersion()},
               {"server", ToJson(session.server())},
               {"configuration", configuration}};
  if (found.result.has_value()) json["result"] = ToJson(*found.result);
  if (!found.slo.empty()) json["slo"] = ToJson(found.slo);
  if (found.search.has_value()) json["find_rate"] = ToJson(*found.search);
  if (!found.sweep.empty()) json["sweep"] = ToJson(found.sweep);
  if (!found.comparison.empty()) json["comparison"] = ToJson(found.comparison, options.compare_by);
  return json;
}

void PrintFound(std::ostream& out, size_t width, const LoadOptions& options,
                const Findings& found) {
  if (found.result.has_value()) PrintLoadTable(out, *found.result, width);
  if (found.search.has_value()) PrintSearch(out, *found.search, width);
  if (!found.sweep.empty()) PrintSweep(out, found.sweep, width);
  if (!found.slo.empty()) {
    out << '\n';
    PrintFindings(out, found.slo, width);
  }
  if (!found.comparison.empty()) {
    out << '\n';
    PrintComparison(out, found.comparison, options.compare_by, width);
  }
}

std::string CsvOf(const Findings& found) {
  if (found.result.has_value()) return ToCsv(*found.result);
  return found.sweep.empty() ? "" : ToCsv(found.sweep);
}

std::string HtmlOf(const Context& context, const LoadOptions& options, const LoadSession& session,
                   const Findings& found) {
  std::ostringstream tables;
  PrintFound(tables, 0, options, found);
  return ToHtml({.command_line = context.command_line,
                 .server = absl::StrCat(context.global.address, ", gemmd ",
                                        session.server().version(), ", ", TimeText(absl::Now())),
                 .tables = tables.str(),
                 .result = found.result.has_value() ? &*found.result : nullptr,
                 .sweep = found.sweep.empty() ? nullptr : &found.sweep});
}

absl::StatusOr<std::optional<files::OutputFile>> OpenUnlessEmpty(const std::string& path) {
  if (path.empty()) return std::nullopt;
  absl::StatusOr<files::OutputFile> opened = files::OutputFile::Open(path);
  if (!opened.ok()) return opened.status();
  return *std::move(opened);
}

absl::Status WriteAll(std::optional<files::OutputFile>& file, const std::string& text) {
  if (!file.has_value()) return absl::OkStatus();
  const absl::Status written = file->Write(text);
  return written.ok() ? file->Close() : written;
}

int Run(const Context& terminal, LoadOptions& options) {
  const bool json_to_output = terminal.global.json || options.json == files::kStandardOutput;
  if (options.json == files::kStandardOutput) options.json.clear();
  const Context context = Beside(terminal, {options.json, options.csv, options.html});
  const absl::Status possible = CheckOptions(options);
  if (!possible.ok()) return FailUsage(context, std::string(possible.message()));
  ApplyDefaults(options);
  // Files are opened before the test, which may be long. The earlier test may be the file to write.
  std::optional<Series> before;
  if (!options.compare.empty()) {
    auto series = SeriesFromFile(options.compare);
    if (!series.ok()) return Fail(context, series.status());
    before = *std::move(series);
  }
  auto file = OpenUnlessEmpty(options.json);
  if (!file.ok()) return Fail(context, file.status());
  auto csv = OpenUnlessEmpty(options.csv);
  if (!csv.ok()) return Fail(context, csv.status());
  auto html = OpenUnlessEmpty(options.html);
  if (!html.ok()) return Fail(context, html.status());
  const auto session = LoadSession::Prepare(context, options);
  if (!session.ok()) return Fail(context, session.status());
  const absl::StatusOr<Findings> found = RunTest(context, options, **session, before);
  if (!found.ok()) return Fail(context, found.status());

  const Json json = DocumentOf(context, options, **session, *found);
  if (json_to_output) {
    PrintJson(context, json);
  } else {
    PrintFound(context.out, context.width, options, *found);
  }
  absl::Status written = WriteAll(*file, JsonText(json));
  if (written.ok()) written = WriteAll(*csv, CsvOf(*found));
  if (written.ok()) written = WriteAll(*html, HtmlOf(context, options, **session, *found));
  if (!written.ok()) return Fail(context, written);
  if (found->result.has_value() && found->result->tally.wrong > 0) {
    context.err << "gemmctl: verification failed: " << found->result->tally.first_wrong << '\n';
  }
  return ExitCodeOf(options, *found);
}

}  // namespace

void AddLoadTest(CLI::App& app, Context& context) {
  const auto options = std::make_shared<LoadOptions>();
  CLI::App* command =
      app.add_subcommand("loadtest", "Run many products at once or at a rate, and time them");
  DeclareLoadOptions(*command, *options);
  // Unlike the global flag of the same name, this one may name a file.
  command
      ->add_option("--json", options->json,
                   "Print everything as JSON instead of tables, or write it to FILE in addition")
      ->expected(0, 1)
      ->default_str(files::kStandardOutput)
      ->type_name("[FILE]");
  command
      ->add_option(
          "--csv", options->csv,
          "Write the phases of each shape and kernel and the windows of time, or the table "
          "of a sweep, to FILE")
      ->type_name("FILE");
  command
      ->add_option("--html", options->html,
                   "Write a report with plots to FILE, which needs nothing else to be read")
      ->type_name("FILE");
  command->footer(
      "Closed loop: --concurrency requests are always under way, so a slow server gets fewer.\n"
      "Open loop: --rate requests are due each second, as from independent users. Where a "
      "request has to wait, the wait is part of its latency.\n"
      "If any request fails, the exit status is 1, but with --slo the objectives decide: 4 where "
      "one "
      "is broken. No request is tried again. Ctrl-C ends the test early "
      "and prints its "
      "table.\n"
      "\n"
      "Examples:\n"
      "  gemmctl loadtest --concurrency 8 --shape 1024x1024x1024 --dtype f16 --duration 10s\n"
      "  gemmctl loadtest --rate 200 --shape 64x64x64=9 --shape 2048x2048x2048=1\n"
      "  gemmctl loadtest --source resident --result keep --shape 4096x4096x4096\n"
      "  gemmctl loadtest --requests 100 --kernel host_openblas --kernel host_reference "
      "--verify=0.1\n"
      "  gemmctl loadtest --batch 1000 --shape 64x64x64 --dtype f16 --source resident\n"
      "  gemmctl loadtest --group 64 --shape 4096x1024x2048 --dtype bf16 --source resident\n"
      "  gemmctl loadtest --rate 50 --arrivals poisson --duration 1m --json old.json\n"
      "  gemmctl loadtest --rate 50 --arrivals poisson --duration 1m --compare old.json\n"
      "  gemmctl loadtest --rate 50 --slo 'p99<20ms,errors<0.1%'\n"
      "  gemmctl loadtest --find-rate --slo 'p99<20ms,errors<0.1%' --duration 6s\n"
      "  gemmctl loadtest --sweep concurrency=1..64 --duration 5s --html sweep.html");
  command->callback([&context, options] {
    context.run = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace gemmd::ctl
