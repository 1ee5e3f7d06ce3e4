// TFLOPS over size, as a picture.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "kernels/bench/metadata.h"
#include "kernels/bench/row.h"

namespace gemm::bench {

// An SVG document: a line a kernel, over the edge of the cube with as many
// multiplications as the shape, on a logarithmic axis. The best of each family
// is coloured and labelled at its end, baselines are black and dashed, the rest is
// thin and grey. The title says what was measured where, as far as `metadata` and
// `suite`, a name for the shapes or nothing, know.
std::string PlotSvg(absl::Span<const Row> rows, const Metadata& metadata, const std::string& suite);

}  // namespace gemm::bench
