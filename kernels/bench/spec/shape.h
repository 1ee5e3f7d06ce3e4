// The sizes of a product, and named lists of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace gemm::bench {

struct Shape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;

  friend constexpr bool operator==(const Shape& x, const Shape& y) {
    return x.m == y.m && x.n == y.n && x.k == y.k;
  }
};

// 2 m n k.
double Flops(const Shape& shape);

// The edge of the cube with as many multiplications: one number for a size.
double CubeEdge(const Shape& shape);

// "4096x2048x512".
std::string ShapeName(const Shape& shape);

// "4096x2048x512,1024": M x N x K, or one number for a cube. INVALID_ARGUMENT
// names the word that is no shape.
absl::StatusOr<std::vector<Shape>> ParseShapes(absl::string_view text);

// Named lists of shapes.
struct Suite {
  absl::string_view name;
  absl::string_view summary;
  std::vector<Shape> shapes;
};

absl::Span<const Suite> Suites();

// Unknown suite: NOT_FOUND, with all names.
absl::StatusOr<const Suite*> FindSuite(absl::string_view name);

}  // namespace gemm::bench
