// A Gaussian process: a smooth function through measured values. It lets a few dozen products that
// were measured on a device stand for all others.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "gemm/problem.h"

namespace gemm {

// The coordinates of a product: the logarithms of its sizes, and how its matrices are stored.
// Products near each other deviate alike from a kernel's formula.
using Point = std::array<float, 8>;
Point PointOf(const Problem& p);

// How alike the point is to each of `points`: 1 for the same one, near 0 far away.
std::vector<float> Likeness(const Point& point, absl::Span<const Point> points);

// A function over points: its mean, and the sum of a weight times the likeness to each of the
// points that it was fitted to.
struct SmoothFunction {
  double mean = 0;
  std::vector<double> weights;  // 0 where nothing was measured

  double At(absl::Span<const float> likeness) const;
};

// The function that has about `values` at `points`; NaN is an unknown value. Empty if fewer than
// kLeastValues are known.
inline constexpr size_t kLeastValues = 4;
std::optional<SmoothFunction> FitSmoothly(absl::Span<const Point> points,
                                          absl::Span<const double> values);

}  // namespace gemm
