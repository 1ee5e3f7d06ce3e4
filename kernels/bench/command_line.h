// What gemm_bench is told.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kernels/bench/benchmark.h"
#include "kernels/bench/candidate.h"
#include "kernels/bench/shape.h"

namespace gemm::bench {

struct CommandLine {
  enum class Job { kMeasure, kListSuites, kCatalogue };

  Job job = Job::kMeasure;
  std::string device = "auto";
  std::vector<Shape> shapes;
  Selection selection;
  ContestRules rules;
  GeneratorSpec inputs = BenchmarkPlan{}.inputs;
  absl::Duration budget = absl::InfiniteDuration();
  bool brief = false;
  bool quiet = false;
  // Empty: no such file.
  std::string csv, json, plot;
  // For the catalogue.
  std::string registers;
  std::vector<std::string> standings;
};

// The words of the command line. Prints help or what is wrong with them, and then
// gives the exit code in place of them.
struct Parsed {
  std::optional<CommandLine> command_line;
  int exit_code = 0;
};
Parsed ParseCommandLine(int argc, const char* const* argv);

}  // namespace gemm::bench
