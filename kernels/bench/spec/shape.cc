#include "kernels/bench/spec/shape.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gemm::bench {
namespace {

// The contract's, of what a server measures.
constexpr int64_t kMaxDim = int64_t{1} << 24;

absl::Status NoShape(absl::string_view word) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", word, "\" is no shape: write MxNxK, such as 4096x4096x512, or one number ",
                   "for a cube, each 1 to ", kMaxDim));
}

absl::StatusOr<Shape> ParseShape(absl::string_view word) {
  std::vector<int64_t> dims;
  for (const absl::string_view part : absl::StrSplit(word, absl::ByAnyChar("xX"))) {
    int64_t dim = 0;
    if (!absl::SimpleAtoi(part, &dim) || dim < 1 || dim > kMaxDim) return NoShape(word);
    dims.push_back(dim);
  }
  if (dims.size() == 1) return Shape{dims[0], dims[0], dims[0]};
  if (dims.size() == 3) return Shape{dims[0], dims[1], dims[2]};
  return NoShape(word);
}

}  // namespace

double Flops(const Shape& shape) {
  return 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
         static_cast<double>(shape.k);
}

double CubeEdge(const Shape& shape) { return std::cbrt(Flops(shape) / 2); }

std::string ShapeName(const Shape& shape) {
  return absl::StrCat(shape.m, "x", shape.n, "x", shape.k);
}

absl::StatusOr<std::vector<Shape>> ParseShapes(absl::string_view text) {
  std::vector<Shape> shapes;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    const absl::StatusOr<Shape> shape = ParseShape(absl::StripAsciiWhitespace(word));
    if (!shape.ok()) return shape.status();
    shapes.push_back(*shape);
  }
  return shapes;
}

}  // namespace gemm::bench
