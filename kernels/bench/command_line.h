// The command line of gemm_bench.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/bench/options.h"

namespace gemm::bench {

struct CommandLine {
  enum class Job { kMeasure, kListSuites, kCatalogue };

  Job job = Job::kMeasure;
  std::string device = "auto";
  BenchmarkOptions benchmark;
  std::string triton;  // a folder; empty: without
  // Adds a row for the choice of `auto`. kByModel: by the estimates of the device's model, if there
  // are any. kMeasured: by times that are measured first, as for a model without estimates.
  enum class Auto { kNo, kByModel, kMeasured };
  Auto with_auto = Auto::kNo;
  // For the catalogue.
  std::string registers;
  std::vector<std::string> standings;
};

// The parsed command line, or the exit code once help was printed to `out` or an
// error to stderr.
struct Parsed {
  std::optional<CommandLine> command_line;
  int exit_code = 0;
};
Parsed ParseCommandLine(int argc, const char* const* argv, std::ostream& out);

}  // namespace gemm::bench
