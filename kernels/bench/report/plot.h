// TFLOPS over size, as a picture.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "kernels/bench/result/row.h"

namespace gemm::bench {

// An SVG document with a line for each kernel. The horizontal axis is the edge of the
// cube with as many multiplications as the shape, and logarithmic. The fastest of
// each family is coloured and labelled at its end; baselines are black and dashed;
// the rest is thin and grey. The title names the device, from `metadata`, and the
// suite, if `suite` is not empty.
std::string PlotSvg(absl::Span<const Row> rows, const Metadata& metadata, const std::string& suite);

}  // namespace gemm::bench
