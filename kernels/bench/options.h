// The command-line options of a benchmark. gemm_bench and gemmctl bench share them. Only gemm_bench
// has --block-scales and --joules.
#pragma once

#include <string>
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

// Declares the options on `app`; `options` outlives its parsing.
void DeclareBenchmarkOptions(CLI::App& app, BenchmarkOptions& options);

// --block-scales, which a server's benchmark does not have.
void DeclareBlockScales(CLI::App& app, BenchmarkOptions& options);

// --joules, likewise.
void DeclareJoules(CLI::App& app, BenchmarkOptions& options);

// Why the files cannot all be written; empty if they can.
std::string ContradictionOf(const Outputs& outputs);

// The output of --list-suites, on lines of at most `width` places; 0: no bound.
void PrintSuites(std::ostream& out, size_t width = 0);

}  // namespace gemm::bench
