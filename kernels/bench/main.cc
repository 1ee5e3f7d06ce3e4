// gemm_bench: measures the kernels of the catalogue.
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "files/output_file.h"
#include "files/output_stream.h"
#include "files/part_files.h"
#include "kernels/bench/backend/backend.h"
#include "kernels/bench/catalogue_page.h"
#include "kernels/bench/command_line.h"
#include "kernels/bench/measure/auto_rows.h"
#include "kernels/bench/measure/benchmark.h"
#include "kernels/bench/measure/device_times.h"
#include "kernels/bench/report/live_report.h"
#include "kernels/bench/report/text_layout.h"
#if GEMM_HAS_CUDA
#include "kernels/bench/measure/triton_kernels.h"
#endif

namespace gemm::bench {
namespace {

constexpr int kFailed = 1;
constexpr int kUsageError = 2;

volatile std::sig_atomic_t interrupted = 0;

int Fail(const absl::Status& status) {
  std::cerr << "gemm_bench: " << status.message() << '\n';
  const bool usage = absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  return usage ? kUsageError : kFailed;
}

int PrintCatalogue(const CommandLine& line, std::ostream& out) {
  const auto kernels = SelectKernels(line.benchmark.selection);
  if (!kernels.ok()) return Fail(kernels.status());
  CatalogueNotes notes;
  absl::Status status;
  if (!line.registers.empty()) status.Update(ReadRegisters(line.registers, notes));
  for (const std::string& path : line.standings) status.Update(ReadStandings(path, notes));
  if (!status.ok()) return Fail(status);
  out << CataloguePage(*kernels, notes);
  return 0;
}

Metadata RunMetadata(const Backend& backend, int argc, const char* const* argv) {
  Metadata metadata = backend.metadata();
  metadata.emplace_back("gemm_bench", GEMM_BENCH_VERSION);
  metadata.emplace_back("date",
                        absl::FormatTime("%Y-%m-%dT%H:%MZ", absl::Now(), absl::UTCTimeZone()));
  std::string command = "gemm_bench";
  for (int i = 1; i < argc; ++i) absl::StrAppend(&command, " ", argv[i]);
  metadata.emplace_back("command", command);
  return metadata;
}

// The estimates by which `auto` chooses, and who owns them where they are measured.
struct Chooser {
  std::optional<Estimates> measured;
  std::optional<AutoRows> rows;  // empty: without
};

// On a model without estimates a server measures for so long at most.
constexpr absl::Duration kMeasureTime = absl::Seconds(30);

absl::Status PrepareAuto(Backend& backend, CommandLine::Auto how, Metadata& metadata,
                         Chooser& chooser) {
  if (how == CommandLine::Auto::kNo) return absl::OkStatus();
  const std::string& device = metadata.front().second;
  DeviceEstimates estimates = BuiltInEstimates(device, backend.caps().capability);
  std::string source = std::string(estimates.model());
  if (how == CommandLine::Auto::kMeasured) {
    const absl::Time began = absl::Now();
    const auto times = MeasureTimes(backend, kMeasureTime, [] { return interrupted != 0; });
    if (!times.ok()) return times.status();
    chooser.measured = Estimates::FromTimes(device, *times);
    estimates = {.estimates = &*chooser.measured};
    source = absl::StrCat(
        "measured at the start: ", times->size(), " products in ",
        absl::FormatDuration(absl::Trunc(absl::Now() - began, absl::Milliseconds(100))));
  }
  metadata.emplace_back("auto", source.empty() ? "by formulas and ranks" : source);
  chooser.rows.emplace(estimates, backend.caps());
  return absl::OkStatus();
}

// An error where the run broke off or a file could not be written.
absl::Status Measure(Backend& backend, const BenchmarkPlan& plan, Metadata metadata,
                     const std::optional<AutoRows>& of_auto, LiveReport& report) {
  const bool on_host = backend.caps().target == Target::kHost;
  absl::Status status =
      report.Begin(std::move(metadata), on_host ? "OpenBLAS" : "cuBLAS", plan.shapes.size());
  if (!status.ok()) return status;
  size_t shape = 0;
  BenchmarkObserver observer;
  observer.cancelled = [&report] { return interrupted != 0 || report.unread(); };
  observer.on_progress = [&](const Progress& now) {
    shape = now.shape;
    report.Update(now);
  };
  observer.on_rows = [&](absl::Span<const Row> rows) {
    std::vector<Row> all(rows.begin(), rows.end());
    if (of_auto) all.push_back(of_auto->For(rows));
    report.Add(all, shape);
  };
  status = RunBenchmark(backend, plan, observer);
  status.Update(report.Finish());
  return status;
}

absl::StatusOr<std::vector<Candidate>> TritonKernels([[maybe_unused]] const Backend& backend,
                                                     [[maybe_unused]] const std::string& folder) {
#if GEMM_HAS_CUDA
  if (backend.caps().target == Target::kCuda) return LoadTritonKernels(folder);
#endif
  return absl::InvalidArgumentError("--triton needs a CUDA device");
}

// Called before anything is measured, so that a missing counter costs no time.
absl::Status CheckJoules(Backend& backend, const ComparisonRules& rules) {
  if (rules.joules_time == absl::ZeroDuration()) return absl::OkStatus();
  const auto counter = backend.energy();
  if (counter.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--joules needs an energy counter: ", counter.status().message()));
}

int Run(int argc, const char* const* argv, std::ostream& out) {
  const Parsed parsed = ParseCommandLine(argc, argv, out);
  if (!parsed.command_line) return parsed.exit_code;
  const CommandLine& line = *parsed.command_line;
  if (line.job == CommandLine::Job::kListSuites) {
    PrintSuites(out, TerminalWidth(STDOUT_FILENO));
    return 0;
  }
  if (line.job == CommandLine::Job::kCatalogue) return PrintCatalogue(line, out);
  Outputs outputs = line.benchmark.outputs;
  outputs.width = TerminalWidth(STDOUT_FILENO);
  const bool taken = gemmd::files::IsStandardOutput(outputs.csv) ||
                     gemmd::files::IsStandardOutput(outputs.json) ||
                     gemmd::files::IsStandardOutput(outputs.plot);
  LiveReport report(outputs, taken ? std::cerr : out, std::cerr, isatty(STDERR_FILENO) == 1);
  if (absl::Status opened = report.Open(); !opened.ok()) return Fail(opened);
  auto backend = CreateBackend(line.device);
  if (!backend.ok()) return Fail(backend.status());
  const BenchmarkOptions& asked = line.benchmark;
  if (absl::Status status = CheckJoules(**backend, asked.rules); !status.ok()) return Fail(status);
  auto candidates = SelectCandidates(asked.selection, (*backend)->caps());
  if (!candidates.ok()) return Fail(candidates.status());
  if (!line.triton.empty()) {
    const auto triton = TritonKernels(**backend, line.triton);
    if (!triton.ok()) return Fail(triton.status());
    candidates->insert(candidates->end(), triton->begin(), triton->end());
  }
  const BenchmarkPlan plan = {.shapes = asked.shapes,
                              .candidates = *std::move(candidates),
                              .rules = asked.rules,
                              .inputs = asked.inputs,
                              .budget = asked.budget};
  std::signal(SIGINT, [](int) { interrupted = 1; });
  Metadata metadata = RunMetadata(**backend, argc, argv);
  Chooser chooser;
  absl::Status status = PrepareAuto(**backend, line.with_auto, metadata, chooser);
  if (!status.ok()) return Fail(status);
  status = Measure(**backend, plan, std::move(metadata), chooser.rows, report);
  if (status.ok()) status = CheckMeasured(report.rows());
  status.Update(CheckRows(report.rows()));
  return status.ok() ? 0 : Fail(status);
}

}  // namespace
}  // namespace gemm::bench

int main(int argc, char** argv) {
  gemmd::files::PrepareProcess();
  gemmd::files::OutputStream out(STDOUT_FILENO, "standard output");
  const int code = gemm::bench::Run(argc, argv, out);
  const absl::Status printed = out.Close();
  if (printed.ok()) return code;
  if (out.unread() && code == 0) gemmd::files::EndUnread();
  std::cerr << "gemm_bench: " << printed.message() << '\n';
  return code == 0 ? gemm::bench::kFailed : code;
}
