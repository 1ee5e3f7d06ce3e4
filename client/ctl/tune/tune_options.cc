#include "client/ctl/tune/tune_options.h"

#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/ctl/parsing/cli_options.h"
#include "client/ctl/parsing/parse.h"
#include "files/text_file.h"
#include "kernels/bench/spec/shape.h"

namespace gemmd::ctl {
namespace {

namespace bench = gemm::bench;

constexpr const char* kWhat = "What to measure";
constexpr const char* kHow = "How";
constexpr size_t kMaxShapesBytes = size_t{1} << 20;

absl::StatusOr<std::vector<bench::Shape>> ReadShapes(absl::string_view path) {
  const auto text = files::ReadText(std::string(path), kMaxShapesBytes);
  if (!text.ok()) return text.status();
  auto shapes = ParseShapesText(*text);
  if (shapes.ok()) return shapes;
  return absl::InvalidArgumentError(absl::StrCat(path, " ", shapes.status().message()));
}

absl::StatusOr<std::vector<bench::Shape>> ShapesOfSuite(absl::string_view name) {
  const auto suite = bench::FindSuite(name);
  if (!suite.ok()) return suite.status();
  return (*suite)->shapes;
}

absl::StatusOr<std::vector<bench::Layout>> ParseLayouts(absl::string_view text) {
  std::vector<bench::Layout> layouts;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    const auto layout = bench::ParseLayout(word);
    if (!layout.ok()) return layout.status();
    layouts.push_back(*layout);
  }
  return layouts;
}

void DeclareShapes(CLI::App& app, TuneOptions& options) {
  const auto add = [&](const std::string& name, auto parse, const std::string& help,
                       const std::string& type) {
    app.add_option_function<std::string>(
           name,
           [name, parse, &options](const std::string& word) {
             const std::vector<bench::Shape> more = ParsedWord(name, parse, word);
             options.shapes.insert(options.shapes.end(), more.begin(), more.end());
           },
           help)
        ->type_name(type)
        ->group(kWhat);
  };
  std::string suites;
  for (const bench::Suite& suite : bench::Suites()) {
    absl::StrAppend(&suites, suites.empty() ? "" : ", ", suite.name);
  }
  add("--shapes,--shape", bench::ParseShapes, "MxNxK,... or one number for a cube", "SHAPES");
  add("--shapes-file", ReadShapes, "A file of such shapes, with # for comments", "FILE");
  add("--suite", ShapesOfSuite, absl::StrCat("A named list of shapes: ", suites), "NAME");
}

void DeclareCandidates(CLI::App& app, TuneOptions& options) {
  bench::Selection& selection = options.selection;
  AddParsed(app, "--types", selection.types, bench::ParseTypesPatterns,
            "A:B:D:COMPUTE,... each part left out or * for any, such as f16:f16:f16:f32 or bf16. "
            "Default: f32:f32:f32:f32")
      ->type_name("TYPES")
      ->group(kWhat);
  AddParsed(app, "--layout,--layouts", options.layouts, ParseLayouts,
            "How A and B are stored, nn,nt,tn,tt (t: transposed). Default: nn")
      ->type_name("LAYOUTS")
      ->group(kWhat);
  app.add_option("--kernels,--kernel", selection.kernels,
                 "Only these: names, or patterns with * and ?")
      ->delimiter(',')
      ->type_name("NAMES")
      ->group(kWhat);
  app.add_option("--family", selection.families, "Only these families")
      ->delimiter(',')
      ->type_name("NAMES")
      ->group(kWhat);
  app.add_option("--best-estimates", options.best_estimates,
                 "Of the kernels that the server has an estimate for, only the N fastest by it are "
                 "measured for a shape (0: all)")
      ->check(CLI::Range(0, 1000))
      ->type_name("N")
      ->capture_default_str()
      ->group(kWhat);
  app.add_option("--device", options.device,
                 "A name from `gemmctl info`, such as cuda:0. Default: the first device")
      ->type_name("DEVICE")
      ->group(kWhat);
}

// After the options that it stands in for.
void DeclareTraffic(CLI::App& app, TuneOptions& options) {
  CLI::Option* const traffic = app.add_flag("--traffic", options.traffic,
                                            "Instead of shapes and types: the products that the "
                                            "server has seen, chose the kernel of, and "
                                            "has no entry for");
  traffic->group(kWhat);
  for (const char* const other : {"--shapes", "--shapes-file", "--suite", "--types", "--layout"}) {
    traffic->excludes(app.get_option(other));
  }
  app.add_option("--limit", options.limit,
                 "With --traffic: only the N kinds of products that took the most time")
      ->check(CLI::Range(1, 1024))
      ->needs(traffic)
      ->type_name("N")
      ->capture_default_str()
      ->group(kWhat);
}

// No other option goes with it. Not declared by `excludes`: the help would say so for each.
void DeclareApply(CLI::App& app, TuneOptions& options) {
  CLI::Option* const apply = app.add_flag(
      "--apply", options.apply,
      "Measure nothing: the server reads its tuning tables again, and takes them up without a new "
      "start. Needs the role admin");
  app.parse_complete_callback([&app, apply] {
    if (apply->count() == 0) return;
    for (const CLI::Option* const other : app.get_options()) {
      if (other == apply || other->count() == 0) continue;
      throw CLI::ValidationError(
          "--apply", absl::StrCat("measures nothing, so it takes no ", other->get_name()));
    }
  });
}

}  // namespace

absl::StatusOr<std::vector<bench::Shape>> ParseShapesText(const std::string& text) {
  std::vector<bench::Shape> shapes;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view content = line.substr(0, line.find('#'));
    for (const absl::string_view word :
         absl::StrSplit(content, absl::ByAnyChar(" \t\r,"), absl::SkipEmpty())) {
      const auto parsed = bench::ParseShapes(word);
      if (!parsed.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("line ", number, ": ", parsed.status().message()));
      }
      shapes.insert(shapes.end(), parsed->begin(), parsed->end());
    }
  }
  if (shapes.empty()) return absl::InvalidArgumentError("has no shapes");
  return shapes;
}

void DeclareTuneOptions(CLI::App& app, TuneOptions& options) {
  DeclareShapes(app, options);
  DeclareCandidates(app, options);
  DeclareTraffic(app, options);
  app.add_option("-o,--output", options.output,
                 "The tuning table. One that exists is added to: new figures replace those of the "
                 "same product on the same device, driver and library")
      ->type_name("FILE");
  app.add_option("--rounds", options.rounds,
                 "Each shape is measured so many times; the median of the rounds counts. From the "
                 "second round on, only kernels that were near the fastest run")
      ->check(CLI::Range(1, 100))
      ->type_name("N")
      ->capture_default_str()
      ->group(kHow);
  app.add_option("--iterations", options.iterations, "Samples of each kernel in a round")
      ->check(CLI::Range(1, 100000))
      ->type_name("N")
      ->capture_default_str()
      ->group(kHow);
  AddParsed(app, "--budget", options.budget, ParseDuration,
            "The time for a round of one shape. Default: the server's --benchmark-limit")
      ->type_name("DURATION")
      ->group(kHow);
  app.add_flag("--quiet", options.quiet, "No progress on stderr")->group(kHow);
  DeclareApply(app, options);
}

}  // namespace gemmd::ctl
