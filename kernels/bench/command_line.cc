#include "kernels/bench/command_line.h"

#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/bench/suites.h"

namespace gemm::bench {
namespace {

constexpr const char* kDescription =
    R"(Measures the kernels of the catalogue on this machine's device, without a server.

Kernels that take the same types and layout compete on each shape: they work on the
same random operands, take turns, and are compared with cuBLAS and with the fastest
of cuBLASLt's algorithms. Operands rotate, so that no launch finds its own in the
cache. Every kernel's result is held against products in double precision.)";

constexpr const char* kFooter = R"(
Columns: two corners of D; the median time of the samples and half their range;
launch parameters; TFLOPS; the gain over the best row above; TFLOPS as a share of
the vendor's; and the worst error as a share of what the types allow (over 1 is
wrong).

Examples:
  gemm_bench --shapes 4096 --family simt --types f32
      the CUDA-core SGEMM rows on one cube
  gemm_bench --suite hgemm-125 --kernels 'hgemm_mma_*' --budget 300 --csv mma.csv
      a family of rows on 125 shapes in five minutes
  gemm_bench --shapes 8192x8192x4096 --kernels '*stage3*' --param swizzle=0,1024,4096
      what a launch parameter does
  gemm_bench --suite triton-31 --family grouped,cublas --types f16 --plot f16.svg
      a picture
  gemm_bench --device host --shapes 512 --types f32 --iterations 3
      where there is no GPU

Exit codes: 0, or 1 where a result was wrong or the device was lost, or 2 where the
command line asks for what there is not.)";

constexpr int kUsageError = 2;

// A parser of ours as a callback of an option; what it refuses names the option.
template <class Parser, class Take>
std::function<void(const std::string&)> Parse(const std::string& option, Parser parser, Take take) {
  return [option, parser, take](const std::string& word) {
    auto value = parser(word);
    if (!value.ok()) throw CLI::ValidationError(option, std::string(value.status().message()));
    take(*std::move(value));
  };
}

absl::StatusOr<std::vector<Shape>> ShapesOfSuite(absl::string_view name) {
  const absl::StatusOr<const Suite*> suite = FindSuite(name);
  if (!suite.ok()) return suite.status();
  return (*suite)->shapes;
}

// "swizzle=0,1024".
absl::StatusOr<std::pair<std::string, std::vector<int64_t>>> ParseParam(absl::string_view word) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
  std::pair<std::string, std::vector<int64_t>> param = {parts.first, {}};
  for (const absl::string_view text : absl::StrSplit(parts.second, ',')) {
    int64_t value = 0;
    if (!absl::SimpleAtoi(text, &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", word, "\": write NAME=VALUE,VALUE, such as swizzle=0,1024"));
    }
    param.second.push_back(value);
  }
  return param;
}

void AddShapes(CLI::App& app, CommandLine& line) {
  const auto append = [&line](std::vector<Shape> shapes) {
    line.shapes.insert(line.shapes.end(), shapes.begin(), shapes.end());
  };
  std::string suites;
  for (const Suite& suite : Suites())
    absl::StrAppend(&suites, suites.empty() ? "" : ", ", suite.name);
  app.add_option_function<std::string>("--suite", Parse("--suite", ShapesOfSuite, append),
                                       absl::StrCat("A named list of shapes: ", suites))
      ->group("What to measure");
  app.add_option_function<std::string>("--shapes", Parse("--shapes", ParseShapes, append),
                                       "MxNxK,... or one number for a cube")
      ->group("What to measure");
}

void AddSelection(CLI::App& app, CommandLine& line) {
  Selection& selection = line.selection;
  app.add_option("--kernels", selection.kernels, "Names, or patterns with * and ?")
      ->delimiter(',')
      ->group("What to measure");
  app.add_option("--family", selection.families, "Families of the catalogue")
      ->delimiter(',')
      ->group("What to measure");
  app.add_option_function<std::string>(
         "--types",
         Parse(
             "--types", ParseTypesPatterns,
             [&selection](std::vector<TypesPattern> types) { selection.types = std::move(types); }),
         "A:B:D:COMPUTE,... each part left out or * for any, such as f16:f16:f16:f32 or bf16; "
         "without it each kernel's first combination")
      ->group("What to measure");
  app.add_option_function<std::string>(
         "--layout",
         Parse("--layout", ParseLayout, [&selection](Layout layout) { selection.layout = layout; }),
         "How A and B are stored: nn, nt, tn, tt (t: transposed); without it as each kernel "
         "reads them")
      ->group("What to measure");
  app.add_option_function<std::vector<std::string>>(
         "--param",
         [&selection](const std::vector<std::string>& words) {
           const auto take = [&selection](std::pair<std::string, std::vector<int64_t>> param) {
             selection.params.insert(std::move(param));
           };
           for (const std::string& word : words) Parse("--param", ParseParam, take)(word);
         },
         "NAME=VALUE,...: each value of a launch parameter; may come several times")
      ->take_all()
      ->allow_extra_args(false)
      ->group("What to measure");
  app.add_option("--device", line.device, "auto, host, cuda or cuda:N")->group("What to measure");
}

void AddRules(CLI::App& app, CommandLine& line) {
  ContestRules& rules = line.rules;
  app.add_option("--warmup", rules.warmup, "Launches of a kernel before its first timed one")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str()
      ->group("How");
  app.add_option("--iterations", rules.iterations,
                 "Samples of each kernel; one of a short kernel is a batch of launches")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str()
      ->group("How");
  app.add_option_function<double>(
         "--budget", [&line](double seconds) { line.budget = absl::Seconds(seconds); },
         "Seconds for the whole run: as they run out, samples and then slow kernels are left out")
      ->check(CLI::PositiveNumber)
      ->group("How");
  app.add_option("--hopeless", rules.hopeless,
                 "A kernel whose first run takes so many times the best's gets no other")
      ->check(CLI::Range(1.0, 1e9))
      ->capture_default_str()
      ->group("How");
  app.add_option_function<std::string>(
         "--distribution",
         [&line](const std::string& name) {
           const bool normal = name == "normal";
           line.inputs.distribution = normal ? Distribution::kNormal : Distribution::kUniform;
           line.inputs.low_or_mean = normal ? 0 : -1;
         },
         "Of the operands' elements: normal (mean 0, deviation 1) or uniform (-1 to 1)")
      ->check(CLI::IsMember({"normal", "uniform"}))
      ->default_str("normal")
      ->group("How");
  app.add_option("--seed", line.inputs.seed, "Of the operands' elements")
      ->capture_default_str()
      ->group("How");
  app.add_flag_callback(
         "--no-peers", [&rules] { rules.peers = false; },
         "Do not measure the vendor's kernels beside")
      ->group("How");
  app.add_option("--algorithms", rules.vendor_algorithms,
                 "Of cuBLASLt to choose the best from; 0: do not")
      ->check(CLI::Range(0, 100))
      ->capture_default_str()
      ->group("How");
}

void AddOutputs(CLI::App& app, CommandLine& line) {
  app.add_option("--csv", line.csv, "Write every row to this file, as it comes")->group("Output");
  app.add_option("--json", line.json, "Write facts, rows and means to this file")->group("Output");
  app.add_option("--plot", line.plot, "Draw TFLOPS over size into this SVG file")->group("Output");
  app.add_flag("--brief", line.brief, "Print the means alone")->group("Output");
  app.add_flag("--quiet", line.quiet, "No progress on stderr")->group("Output");
  app.add_flag_callback(
         "--list-suites", [&line] { line.job = CommandLine::Job::kListSuites; },
         "Print the suites and their shapes, and end")
      ->group("Output");
  app.add_flag_callback(
         "--catalogue", [&line] { line.job = CommandLine::Job::kCatalogue; },
         "Print the selected kernels as Markdown, and end")
      ->group("The catalogue");
  app.add_option("--registers", line.registers,
                 "Registers of each kernel, a file as tests/kernels/machine_code.py prints it")
      ->group("The catalogue");
  app.add_option("--standing", line.standings,
                 "Figures of each kernel, from a file of --json; the first that has it counts")
      ->delimiter(',')
      ->group("The catalogue");
}

}  // namespace

Parsed ParseCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  CLI::App app(kDescription, "gemm_bench");
  app.footer(kFooter);
  AddShapes(app, line);
  AddSelection(app, line);
  AddRules(app, line);
  AddOutputs(app, line);
  try {
    app.parse(argc, argv);
    if (line.job == CommandLine::Job::kMeasure && line.shapes.empty()) {
      throw CLI::RequiredError("--suite or --shapes");
    }
  } catch (const CLI::ParseError& error) {
    return {.exit_code = app.exit(error) == 0 ? 0 : kUsageError};
  }
  return {.command_line = std::move(line)};
}

}  // namespace gemm::bench
