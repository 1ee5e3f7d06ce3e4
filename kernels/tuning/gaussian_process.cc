#include "kernels/tuning/gaussian_process.h"

#include <cmath>
#include <cstdint>

namespace gemm {
namespace {

// The length scale of likeness, in powers of two of a size. Scatter between measurements, and
// changes that a smooth function does not follow, are a tenth of the variance.
constexpr float kLength = 5;
constexpr double kNoise = 0.1;
// The distance between products that differ in how an operand is stored.
constexpr float kApart = 3;

float Log2(int64_t size) { return std::log2(static_cast<float>(size)); }

// 0 if lines of `line` elements all begin at multiples of 16 bytes, else kApart: a library has
// other kernels for those.
float Misaligned(int64_t line, DType type) {
  constexpr int64_t kBytes = 16;
  return line * static_cast<int64_t>(SizeOf(type)) % kBytes == 0 ? 0 : kApart;
}

float Similarity(const Point& x, const Point& y) {
  float squares = 0;
  for (size_t i = 0; i < x.size(); ++i) squares += (x[i] - y[i]) * (x[i] - y[i]);
  return std::exp(-squares / (2 * kLength * kLength));
}

// Solves `a` x = `b` for a symmetric positive definite matrix of b.size() rows, by Cholesky's
// factors. Both are overwritten; b becomes x.
void SolveSymmetric(std::vector<double>& a, std::vector<double>& b) {
  const size_t n = b.size();
  for (size_t row = 0; row < n; ++row) {
    for (size_t col = 0; col <= row; ++col) {
      double sum = a[row * n + col];
      for (size_t i = 0; i < col; ++i) sum -= a[row * n + i] * a[col * n + i];
      a[row * n + col] = row == col ? std::sqrt(sum) : sum / a[col * n + col];
    }
    for (size_t i = 0; i < row; ++i) b[row] -= a[row * n + i] * b[i];
    b[row] /= a[row * n + row];
  }
  for (size_t row = n; row-- > 0;) {
    for (size_t i = row + 1; i < n; ++i) b[row] -= a[i * n + row] * b[i];
    b[row] /= a[row * n + row];
  }
}

}  // namespace

Point PointOf(const Problem& p) {
  return {Log2(p.m),
          Log2(p.n),
          Log2(p.k),
          p.trans_a ? kApart : 0,
          p.trans_b ? kApart : 0,
          Misaligned(p.trans_a ? p.m : p.k, p.types.a),
          Misaligned(p.trans_b ? p.k : p.n, p.types.b),
          Misaligned(p.n, p.types.d)};
}

std::vector<float> Likeness(const Point& point, absl::Span<const Point> points) {
  std::vector<float> likeness;
  likeness.reserve(points.size());
  for (const Point& other : points) likeness.push_back(Similarity(point, other));
  return likeness;
}

double SmoothFunction::At(absl::Span<const float> likeness) const {
  double value = mean;
  for (size_t i = 0; i < weights.size(); ++i) {
    value += weights[i] * static_cast<double>(likeness[i]);
  }
  return value;
}

std::optional<SmoothFunction> FitSmoothly(absl::Span<const Point> points,
                                          absl::Span<const double> values) {
  std::vector<size_t> known;
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) continue;
    known.push_back(i);
    sum += values[i];
  }
  const size_t n = known.size();
  if (n < kLeastValues) return std::nullopt;
  SmoothFunction function{.mean = sum / static_cast<double>(n),
                          .weights = std::vector<double>(points.size())};
  std::vector<double> matrix(n * n), weights(n);
  for (size_t row = 0; row < n; ++row) {
    weights[row] = values[known[row]] - function.mean;
    for (size_t col = 0; col < n; ++col) {
      matrix[row * n + col] =
          static_cast<double>(Similarity(points[known[row]], points[known[col]])) +
          (row == col ? kNoise : 0);
    }
  }
  SolveSymmetric(matrix, weights);
  for (size_t i = 0; i < n; ++i) function.weights[known[i]] = weights[i];
  return function;
}

}  // namespace gemm
