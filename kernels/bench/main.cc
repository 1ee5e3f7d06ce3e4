// gemm_bench: measures the kernels of the catalogue.
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/bench/backend.h"
#include "kernels/bench/benchmark.h"
#include "kernels/bench/catalogue_page.h"
#include "kernels/bench/command_line.h"
#include "kernels/bench/plot.h"
#include "kernels/bench/progress.h"
#include "kernels/bench/report_files.h"
#include "kernels/bench/report_table.h"
#include "kernels/bench/suites.h"

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

void ListSuites() {
  for (const Suite& suite : Suites()) {
    std::cout << suite.name << ": " << suite.summary << "\n ";
    for (const Shape& shape : suite.shapes) std::cout << ' ' << ShapeName(shape);
    std::cout << '\n';
  }
}

int PrintCatalogue(const CommandLine& line) {
  const auto kernels = SelectKernels(line.selection);
  if (!kernels.ok()) return Fail(kernels.status());
  CatalogueNotes notes;
  absl::Status status;
  if (!line.registers.empty()) status.Update(ReadRegisters(line.registers, notes));
  for (const std::string& path : line.standings) status.Update(ReadStandings(path, notes));
  if (!status.ok()) return Fail(status);
  std::cout << CataloguePage(*kernels, notes);
  return 0;
}

Facts RunFacts(const Backend& backend, int argc, const char* const* argv) {
  Facts facts = backend.facts();
  facts.emplace_back("gemm_bench", GEMM_BENCH_VERSION);
  facts.emplace_back("date", absl::FormatTime("%Y-%m-%dT%H:%MZ", absl::Now(), absl::UTCTimeZone()));
  std::string command = "gemm_bench";
  for (int i = 1; i < argc; ++i) absl::StrAppend(&command, " ", argv[i]);
  facts.emplace_back("command", command);
  return facts;
}

absl::Status WriteFiles(const CommandLine& line, const Facts& facts, const std::vector<Row>& rows) {
  absl::Status status;
  if (!line.json.empty()) status.Update(WriteFile(line.json, ToJson(facts, rows)));
  if (!line.plot.empty()) {
    status.Update(WriteFile(line.plot, PlotSvg(rows, facts.front().second)));
  }
  return status;
}

// The rows as they come; an error where the run broke off.
absl::Status Measure(const CommandLine& line, Backend& backend, const BenchmarkPlan& plan,
                     std::vector<Row>& rows) {
  std::optional<CsvWriter> csv;
  if (!line.csv.empty()) {
    absl::StatusOr<CsvWriter> created = CsvWriter::Create(line.csv);
    if (!created.ok()) return created.status();
    csv = *std::move(created);
  }
  const bool on_host = backend.caps().target == Target::kHost;
  const char* const vendor = on_host ? "OpenBLAS" : "cuBLAS";
  ProgressReport progress(std::cerr, isatty(STDERR_FILENO) == 1);
  size_t shape = 0;
  absl::Status written;
  BenchmarkObserver observer;
  observer.cancelled = [] { return interrupted != 0; };
  observer.on_progress = [&](const Progress& now) {
    shape = now.shape;
    if (!line.quiet) progress.Update(now);
  };
  observer.on_rows = [&](absl::Span<const Row> more) {
    progress.Erase();
    rows.insert(rows.end(), more.begin(), more.end());
    if (!line.brief) PrintRows(more, shape, plan.shapes.size(), vendor, std::cout);
    std::cout << std::flush;
    if (csv) written.Update(csv->Write(more));
  };
  absl::Status status = RunBenchmark(backend, plan, observer);
  progress.Erase();
  PrintSummary(rows, vendor, std::cout);
  status.Update(written);
  return status;
}

int Run(int argc, const char* const* argv) {
  const Parsed parsed = ParseCommandLine(argc, argv);
  if (!parsed.command_line) return parsed.exit_code;
  const CommandLine& line = *parsed.command_line;
  if (line.job == CommandLine::Job::kListSuites) {
    ListSuites();
    return 0;
  }
  if (line.job == CommandLine::Job::kCatalogue) return PrintCatalogue(line);
  auto backend = CreateBackend(line.device);
  if (!backend.ok()) return Fail(backend.status());
  auto candidates = SelectCandidates(line.selection, (*backend)->caps());
  if (!candidates.ok()) return Fail(candidates.status());
  const BenchmarkPlan plan = {.shapes = line.shapes,
                              .candidates = *std::move(candidates),
                              .rules = line.rules,
                              .inputs = line.inputs,
                              .budget = line.budget};
  const Facts facts = RunFacts(**backend, argc, argv);
  PrintFacts(facts, std::cout);
  std::signal(SIGINT, [](int) { interrupted = 1; });

  std::vector<Row> rows;
  absl::Status status = Measure(line, **backend, plan, rows);
  status.Update(WriteFiles(line, facts, rows));
  if (!status.ok()) return Fail(status);
  for (const Row& row : rows) {
    if (row.measured && !row.right()) {
      return Fail(absl::DataLossError(absl::StrCat(row.kernel, " on ", ShapeName(row.shape),
                                                   " is wrong by ", row.error.of_bound,
                                                   " times what is allowed")));
    }
  }
  return 0;
}

}  // namespace
}  // namespace gemm::bench

int main(int argc, char** argv) { return gemm::bench::Run(argc, argv); }
