// The options of gemmctl tune.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/bench/spec/layout.h"
#include "kernels/bench/spec/selection.h"
#include "kernels/bench/spec/shape.h"

namespace CLI {
class App;
}

namespace gemmd::ctl {

struct TuneOptions {
  std::vector<gemm::bench::Shape> shapes;
  // In place of shapes, types and layouts: the products of the server's traffic, so many.
  bool traffic = false;
  int limit = 32;
  // Kernels, families, types and parameters to try. The layout is that of `layouts`.
  gemm::bench::Selection selection;
  std::vector<gemm::bench::Layout> layouts = {{}};
  std::string device;
  std::string output;  // the table
  // So many of the kernels with an estimate are measured for a shape. 0: all.
  int best_estimates = 8;
  int rounds = 3;
  int iterations = 10;
  absl::Duration budget = absl::InfiniteDuration();  // of a shape's round
  bool quiet = false;
  // Measures nothing: the server reads its own tables again.
  bool apply = false;
};

// Declares them on `app`; `options` outlives its parsing.
void DeclareTuneOptions(CLI::App& app, TuneOptions& options);

// Shapes from a text with words MxNxK, or one number for a cube, apart by blanks, commas or
// line ends; # begins a comment. INVALID_ARGUMENT names the line.
absl::StatusOr<std::vector<gemm::bench::Shape>> ParseShapesText(const std::string& text);

}  // namespace gemmd::ctl
