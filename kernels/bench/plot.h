// TFLOPS over size, as a picture.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "kernels/bench/row.h"

namespace gemm::bench {

// An SVG document: a line a kernel, over the edge of the cube with as many
// multiplications as the shape, on a logarithmic axis. Shapes of one size are
// one point, their geometric mean. Of many kernels it shows the peers, the best
// of each family and then the best, and says how many it leaves out.
std::string PlotSvg(absl::Span<const Row> rows, const std::string& title);

}  // namespace gemm::bench
