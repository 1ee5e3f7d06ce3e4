// The command-line options that gemm_bench and gemmctl bench have in common.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "kernels/bench/report/live_report.h"
#include "kernels/bench/spec/rules.h"
#include "kernels/bench/spec/selection.h"
#include "kernels/bench/spec/shape.h"

namespace CLI {
class App;
}

namespace gemm::bench {

struct BenchmarkOptions {
  std::vector<Shape> shapes;
  Selection selection;
  ComparisonRules rules;
  GeneratorSpec inputs = kStandardInputs;
  // Infinite: as long as it takes.
  absl::Duration budget = absl::InfiniteDuration();
  Outputs outputs;
  bool list_suites = false;
};

// Declares them on `app`; `options` outlives its parsing.
void DeclareBenchmarkOptions(CLI::App& app, BenchmarkOptions& options);

// The output of --list-suites, on lines of at most `width` places; 0: no bound.
void PrintSuites(std::ostream& out, size_t width = 0);

}  // namespace gemm::bench
