#include "kernels/bench/options.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gemm/quote.h"
#include "kernels/bench/report/text_layout.h"
#include "kernels/bench/spec/shape.h"

namespace gemm::bench {
namespace {

// Readings over this time scatter by a tenth on an H200.
constexpr absl::Duration kUsualJoulesTime = absl::Milliseconds(500);

// Wraps our parser as a callback of an option; its errors name the option.
template <class Parser, class Take>
std::function<void(const std::string&)> Parse(const std::string& option, Parser parser, Take take) {
  return [option, parser, take](const std::string& word) {
    auto value = parser(word);
    if (!value.ok()) throw CLI::ValidationError(option, std::string(value.status().message()));
    take(*std::move(value));
  };
}

absl::StatusOr<double> ParseBudget(absl::string_view word) {
  double seconds = 0;
  if (absl::SimpleAtod(word, &seconds) && seconds > 0) return seconds;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", word, "\" is not a number of seconds above 0"));
}

absl::StatusOr<absl::Duration> ParseSampleTime(absl::string_view word) {
  double milliseconds = 0;
  if (absl::SimpleAtod(word, &milliseconds) && milliseconds >= 0.01 && milliseconds <= 1000) {
    return absl::Milliseconds(milliseconds);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", word, "\" is not a number of milliseconds of 0.01 to 1000"));
}

absl::StatusOr<double> ParseCutoff(absl::string_view word) {
  double cutoff = 0;
  if (absl::SimpleAtod(word, &cutoff) && cutoff >= 1 && cutoff <= 1e9) return cutoff;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", word, "\" is not a number of 1 to 1000000000"));
}

// Empty: as long as is usual.
absl::StatusOr<absl::Duration> ParseJoulesTime(absl::string_view word) {
  if (word.empty()) return kUsualJoulesTime;
  double seconds = 0;
  if (absl::SimpleAtod(word, &seconds) && seconds >= 0.1 && seconds <= 600) {
    return absl::Seconds(seconds);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", word, "\" is not a number of seconds of 0.1 to 600"));
}

absl::StatusOr<uint64_t> ParseSeed(absl::string_view word) {
  uint64_t seed = 0;
  if (absl::SimpleAtoi(word, &seed)) return seed;
  return absl::InvalidArgumentError(absl::StrCat("\"", word, "\" is not a seed of 0 to 2^64 - 1"));
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

// A device, such as /dev/null, takes whatever is written.
bool IsNoFile(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

void AddShapes(CLI::App& app, BenchmarkOptions& options) {
  const auto append = [&options](std::vector<Shape> shapes) {
    options.shapes.insert(options.shapes.end(), shapes.begin(), shapes.end());
  };
  std::string suites;
  for (const Suite& suite : Suites())
    absl::StrAppend(&suites, suites.empty() ? "" : ", ", suite.name);
  const auto append_suite = [&options, append](const Suite* suite) {
    append(suite->shapes);
    absl::StrAppend(&options.outputs.suite, options.outputs.suite.empty() ? "" : ", ", suite->name);
  };
  app.add_option_function<std::string>("--suite", Parse("--suite", FindSuite, append_suite),
                                       absl::StrCat("A named list of shapes: ", suites))
      ->group("What to measure");
  app.add_option_function<std::string>("--shapes,--shape", Parse("--shapes", ParseShapes, append),
                                       "MxNxK,... or one number for a cube")
      ->group("What to measure");
}

void AddSelection(CLI::App& app, BenchmarkOptions& options) {
  Selection& selection = options.selection;
  app.add_option("--kernels,--kernel", selection.kernels, "Names, or patterns with * and ?")
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
}

void AddRules(CLI::App& app, BenchmarkOptions& options) {
  ComparisonRules& rules = options.rules;
  app.add_option("--warmup", rules.warmup, "Launches of a kernel before its first timed one")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str()
      ->group("How");
  app.add_option("--iterations", rules.iterations,
                 "Samples of each kernel; one of a short kernel is a batch of launches")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str()
      ->group("How");
  app.add_option_function<std::string>(
         "--sample-time",
         Parse("--sample-time", ParseSampleTime,
               [&rules](absl::Duration time) { rules.sample_time = time; }),
         "Of a sample: a shorter kernel is launched several times in a row")
      ->type_name("MILLISECONDS")
      ->default_str(absl::StrCat(absl::ToDoubleMilliseconds(rules.sample_time)))
      ->group("How");
  app.add_option("--checked-lines", rules.checked_lines,
                 "Rows of D, and columns: the elements where they cross are compared with the "
                 "right ones")
      ->check(CLI::Range(2, 64))
      ->capture_default_str()
      ->group("How");
  app.add_option_function<std::string>(
         "--budget",
         Parse("--budget", ParseBudget,
               [&options](double seconds) { options.budget = absl::Seconds(seconds); }),
         "Seconds for the whole run: as they run out, samples and then slow kernels are left out")
      ->type_name("SECONDS")
      ->group("How");
  app.add_option_function<std::string>(
         "--cutoff",
         Parse("--cutoff", ParseCutoff, [&rules](double cutoff) { rules.cutoff = cutoff; }),
         "A kernel runs only once if that takes over 1 ms and so many times the fastest one's")
      ->type_name("NUMBER")
      ->default_str(absl::StrCat(rules.cutoff))
      ->group("How");
  app.add_option_function<std::string>(
         "--distribution",
         [&options](const std::string& name) {
           const bool normal = name == "normal";
           options.inputs.distribution = normal ? Distribution::kNormal : Distribution::kUniform;
           options.inputs.low_or_mean = normal ? 0 : -1;
         },
         "Of the operands' elements: normal (mean 0, deviation 1) or uniform (-1 to 1)")
      ->check(CLI::IsMember({"normal", "uniform"}))
      ->default_str("normal")
      ->group("How");
  app.add_option_function<std::string>(
         "--seed",
         Parse("--seed", ParseSeed, [&options](uint64_t seed) { options.inputs.seed = seed; }),
         "Of the operands' elements")
      ->type_name("SEED")
      ->default_str(absl::StrCat(options.inputs.seed))
      ->group("How");
  app.add_flag_callback(
         "--no-baselines", [&rules] { rules.baselines = false; },
         "Do not measure the vendor's kernels as baselines")
      ->group("How");
  app.add_option("--algorithms", rules.vendor_algorithms,
                 "Of cuBLASLt, sampled like the kernels: the fastest is cublaslt_best; 0: none")
      ->check(CLI::Range(0, 100))
      ->capture_default_str()
      ->group("How");
}

void AddOutputs(CLI::App& app, BenchmarkOptions& options) {
  Outputs& outputs = options.outputs;
  app.add_option("--csv", outputs.csv, "Write every row to this file, as it comes")
      ->group("Output");
  app.add_option("--plot,--svg", outputs.plot, "Draw TFLOPS over size into this SVG file")
      ->group("Output");
  app.add_flag_callback(
         "--brief", [&outputs] { outputs.tables = Outputs::Tables::kMeans; },
         "Print the means alone")
      ->group("Output");
  app.add_flag("--quiet", outputs.quiet, "No progress on stderr")->group("Output");
  app.add_flag("--list-suites", options.list_suites, "Print the suites and their shapes, and end")
      ->group("Output");
}

}  // namespace

void DeclareBenchmarkOptions(CLI::App& app, BenchmarkOptions& options) {
  AddShapes(app, options);
  AddSelection(app, options);
  AddRules(app, options);
  AddOutputs(app, options);
}

void DeclareBlockScales(CLI::App& app, BenchmarkOptions& options) {
  app.add_option_function<std::string>(
         "--block-scales",
         Parse("--block-scales", ParseScales,
               [&options](Scales scales) {
                 options.rules.scales = scales;
                 options.selection.with_scales = true;
               }),
         "A:B, each lines or tiles: multiply fp8 operands with a scale for each 1 x 128 or "
         "128 x 128 block; the baselines multiply them without")
      ->group("What to measure");
}

void DeclareJoules(CLI::App& app, BenchmarkOptions& options) {
  app.add_option_function<std::string>(
         "--joules",
         Parse("--joules", ParseJoulesTime,
               [&options](absl::Duration time) { options.rules.joules_time = time; }),
         absl::StrCat("Measure the energy of a product, too: after the samples of a shape each "
                      "kernel runs alone, back to back, for so many seconds (without a number ",
                      absl::ToDoubleSeconds(kUsualJoulesTime),
                      ") and until the device's counter changes; this counts "
                      "towards --budget"))
      ->type_name("[SECONDS]")
      ->expected(0, 1)
      ->group("How");
}

std::string ContradictionOf(const Outputs& outputs) {
  const std::pair<absl::string_view, const std::string*> files[] = {
      {"--csv", &outputs.csv}, {"--json", &outputs.json}, {"--plot", &outputs.plot}};
  for (const auto& [name, path] : files) {
    for (const auto& [other, same] : files) {
      if (name == other || path->empty() || *path != *same || IsNoFile(*path)) continue;
      return absl::StrCat(name, " and ", other, " both name ", Quoted(*path),
                          "; each needs a file of its own");
    }
  }
  return "";
}

void PrintSuites(std::ostream& out, size_t width) {
  for (const Suite& suite : Suites()) {
    for (const std::string& line : WrapText(absl::StrCat(suite.name, ": ", suite.summary), width)) {
      out << line << '\n';
    }
    std::string shapes;
    for (const Shape& shape : suite.shapes) absl::StrAppend(&shapes, " ", ShapeName(shape));
    const size_t room = width > 2 ? width - 2 : 0;
    for (const std::string& line : WrapText(absl::string_view(shapes).substr(1), room)) {
      out << "  " << line << '\n';
    }
  }
}

}  // namespace gemm::bench
