#include "gemm/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gemm/scalars.h"
#include "kernels/host/pack.h"
#include "kernels/reference/error_bound.h"

namespace gemm {
namespace {

// A row of op(A) or a column of op(B) in doubles, with the sum of its magnitudes. With block scales
// there is one for each block of k, which is part of the magnitudes, and not of the values.
struct Line {
  std::vector<double> values;
  std::vector<double> scales;
  double magnitude = 0;
  double largest_scale = 1;
};

// Rows of op(A) and columns of op(B), converted once for as long as they fit.
class LineCache {
 public:
  LineCache(const Problem& problem, const Operands& host)
      : problem_(problem), host_(host), a_(ViewA(problem, host)), b_(ViewB(problem, host)) {}

  const Line& RowOfA(int64_t row) {
    return Get(rows_, row, problem_.scales_a, host_.scales_a,
               [&](double* out) { PackBlock(a_, row, 1, 0, k_, out, k_); });
  }
  const Line& ColumnOfB(int64_t col) {
    return Get(cols_, col, problem_.scales_b, host_.scales_b,
               [&](double* out) { PackBlock(b_, 0, k_, col, 1, out, 1); });
  }

 private:
  using Lines = std::unordered_map<int64_t, Line>;
  static constexpr int64_t kMaxElements = 4 << 20;  // in each of the two

  template <class Fill>
  const Line& Get(Lines& lines, int64_t index, ScaleBlocks blocks, const ScaleView& scales,
                  Fill&& fill) {
    const auto found = lines.find(index);
    if (found != lines.end()) return found->second;
    if (static_cast<int64_t>(lines.size() + 1) * k_ > kMaxElements) lines.clear();
    Line& line = lines[index];
    line.values.resize(static_cast<size_t>(k_));
    fill(line.values.data());
    if (blocks == ScaleBlocks::kNone) {
      for (const double value : line.values) line.magnitude += std::abs(value);
      return line;
    }
    for (int64_t p = 0; p < k_; p += kScaleBlock) {
      const double scale = ScaleOf(blocks, scales, index, p / kScaleBlock);
      for (int64_t i = p; i < std::min(k_, p + kScaleBlock); ++i) {
        line.magnitude += std::abs(scale * line.values[static_cast<size_t>(i)]);
      }
      if (std::isfinite(scale)) line.largest_scale = std::max(line.largest_scale, std::abs(scale));
      line.scales.push_back(scale);
    }
    return line;
  }

  const Problem problem_;
  const Operands& host_;
  const int64_t k_ = problem_.k;
  const OperandView a_;
  const OperandView b_;
  Lines rows_;
  Lines cols_;
};

// Adds the dot product of [begin, end), the sum of magnitudes and that of squares, each in four
// interleaved sums, times `scale`.
void AddDot(const Line& a, const Line& b, size_t begin, size_t end, double scale,
            ElementTerms& terms) {
  double dot[4] = {}, abs_dot[4] = {}, squares[4] = {};
  for (size_t p = begin; p < end; ++p) {
    const double product = a.values[p] * b.values[p];
    dot[p % 4] += product;
    abs_dot[p % 4] += std::abs(product);
    squares[p % 4] += product * product;
  }
  terms.dot += scale * ((dot[0] + dot[1]) + (dot[2] + dot[3]));
  terms.abs_dot += std::abs(scale) * ((abs_dot[0] + abs_dot[1]) + (abs_dot[2] + abs_dot[3]));
  terms.dot_of_squares += scale * scale * ((squares[0] + squares[1]) + (squares[2] + squares[3]));
}

void Dot(const Line& a, const Line& b, ElementTerms& terms) {
  const size_t k = a.values.size();
  if (a.scales.empty()) AddDot(a, b, 0, k, 1, terms);
  for (size_t block = 0; block < a.scales.size(); ++block) {
    const size_t begin = block * static_cast<size_t>(kScaleBlock);
    AddDot(a, b, begin, std::min(k, begin + static_cast<size_t>(kScaleBlock)),
           a.scales[block] * b.scales[block], terms);
  }
  terms.abs_a = a.magnitude;
  terms.abs_b = b.magnitude;
  terms.largest_scale_a = a.largest_scale;
  terms.largest_scale_b = b.largest_scale;
}

// `problem` has rounded scalars.
Expected ExpectedAt(const Problem& problem, const Operands& host, Elements elements,
                    LineCache& lines, int64_t i, int64_t j) {
  ElementTerms terms;
  if (problem.alpha != 0) Dot(lines.RowOfA(i), lines.ColumnOfB(j), terms);
  if (problem.beta != 0) terms.c = LoadElement(host.c, i * host.ldc + j, problem.types.d);
  if (problem.bias == BiasAxis::kColumns) terms.bias = LoadElement(host.bias, j, problem.types.d);
  if (problem.bias == BiasAxis::kRows) terms.bias = LoadElement(host.bias, i, problem.types.d);
  return BoundElement(problem, terms, elements);
}

// |actual - value| / tolerance, with rules for NaN and infinities.
double ErrorRatio(const Problem& problem, const Expected& expected, double actual) {
  if (expected.tolerance == kInfinity) return 0;
  if (std::isnan(expected.value)) return std::isnan(actual) ? 0 : kInfinity;
  if (std::isinf(expected.value)) return actual == expected.value ? 0 : kInfinity;
  if (std::isnan(actual)) return kInfinity;
  if (std::isinf(actual)) {
    const bool overflows =
        std::abs(expected.value) + expected.tolerance >= LargestFinite(problem.types.d);
    return overflows && std::signbit(actual) == std::signbit(expected.value) ? 0 : kInfinity;
  }
  if (actual == expected.value) return 0;
  return std::abs(actual - expected.value) / expected.tolerance;
}

// The size of the tolerances relative to that of the values. Infinite and NaN values do not count.
class Resolution {
 public:
  void Add(const Expected& expected) {
    if (!std::isfinite(expected.value)) return;
    any_ = true;
    tolerances_ += expected.tolerance * expected.tolerance;
    values_ += expected.value * expected.value;
  }
  // Infinite without a finite value, and if every value is 0 and a tolerance is not.
  double share() const {
    if (!any_) return kInfinity;
    return tolerances_ == 0 ? 0 : std::sqrt(tolerances_ / values_);
  }

 private:
  bool any_ = false;
  double tolerances_ = 0;
  double values_ = 0;
};

using Position = std::pair<int64_t, int64_t>;

// The elements to look at, in order.
std::vector<Position> Sample(const Problem& problem, int64_t max_samples, uint64_t seed) {
  std::vector<Position> positions;
  const int64_t m = problem.m, n = problem.n;
  if (m <= max_samples && n <= max_samples && m * n <= max_samples) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) positions.emplace_back(i, j);
    }
    return positions;
  }
  positions = {{0, 0}, {0, n - 1}, {m - 1, 0}, {m - 1, n - 1}};
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int64_t> row(0, m - 1), col(0, n - 1);
  for (int64_t s = 4; s < max_samples; ++s) {
    // Every eighth along each of the last row and the last column.
    const int64_t i = s % 8 == 0 ? m - 1 : row(random);
    const int64_t j = s % 8 == 1 ? n - 1 : col(random);
    positions.emplace_back(i, j);
  }
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  return positions;
}

}  // namespace

Expected ExpectedElement(const Problem& problem, const Operands& host, Elements elements, int64_t i,
                         int64_t j) {
  LineCache lines(problem, host);
  return ExpectedAt(RoundScalars(problem), host, elements, lines, i, j);
}

struct ExpectedElements::Lines {
  LineCache cache;
};

ExpectedElements::ExpectedElements(const Problem& problem, const Operands& host, Elements elements)
    : problem_(RoundScalars(problem)),
      host_(host),
      elements_(elements),
      lines_(new Lines{LineCache(problem, host)}) {}

ExpectedElements::~ExpectedElements() = default;

Expected ExpectedElements::At(int64_t i, int64_t j) {
  return ExpectedAt(problem_, host_, elements_, lines_->cache, i, j);
}

Agreement CompareWithReference(const Problem& given, const Operands& host, Elements elements,
                               int64_t max_samples, uint64_t seed) {
  const Problem problem = RoundScalars(given);
  Agreement agreement;
  LineCache lines(problem, host);
  Resolution resolution;
  double worst = -1;
  for (const auto& [i, j] : Sample(problem, max_samples, seed)) {
    const Expected expected = ExpectedAt(problem, host, elements, lines, i, j);
    const double actual = LoadElement(host.d, i * host.ldd + j, problem.types.d);
    const double ratio = ErrorRatio(problem, expected, actual);
    ++agreement.checked;
    if (!std::isfinite(expected.value)) ++agreement.not_finite;
    resolution.Add(expected);
    if (std::isfinite(actual) && std::isfinite(expected.value)) {
      agreement.worst_absolute_error =
          std::max(agreement.worst_absolute_error, std::abs(actual - expected.value));
    }
    if (ratio <= worst) continue;
    worst = ratio;
    agreement.worst_ratio = ratio;
    agreement.worst_value = actual;
    agreement.worst_expected = expected.value;
    agreement.worst_row = i;
    agreement.worst_col = j;
  }
  agreement.resolution = resolution.share();
  return agreement;
}

}  // namespace gemm
