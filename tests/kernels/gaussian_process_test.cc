#include "kernels/tuning/gaussian_process.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace gemm {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

Problem Sized(int64_t m, int64_t n, int64_t k) { return {.m = m, .n = n, .k = k}; }

// Fits the values that `value` gives for products of 16 to 4096.
template <class Value>
std::optional<SmoothFunction> Fit(std::vector<Point>& points, Value value) {
  std::vector<double> values;
  for (int64_t m = 16; m <= 4096; m *= 4) {
    for (int64_t n = 16; n <= 4096; n *= 4) {
      points.push_back(PointOf(Sized(m, n, 256)));
      values.push_back(value(m, n));
    }
  }
  return FitSmoothly(points, values);
}

TEST(SmoothFunction, IsNearWhatWasMeasuredAndBetween) {
  std::vector<Point> points;
  const auto expected = [](int64_t m, int64_t n) {
    return 0.1 * std::log2(static_cast<double>(m)) - 0.05 * std::log2(static_cast<double>(n));
  };
  const auto function = Fit(points, expected);
  ASSERT_TRUE(function.has_value());
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{64, 1024}, {128, 2048}, {512, 32}}) {
    const double value = function->At(Likeness(PointOf(Sized(m, n, 256)), points));
    EXPECT_NEAR(value, expected(m, n), 0.05) << m << " x " << n;
  }
}

TEST(SmoothFunction, IsTheMeanFarAwayFromWhatWasMeasured) {
  std::vector<Point> points;
  const auto function = Fit(points, [](int64_t m, int64_t) { return m < 100 ? 1.0 : 3.0; });
  ASSERT_TRUE(function.has_value());
  const double value = function->At(Likeness(PointOf(Sized(1, 1, int64_t{1} << 40)), points));
  EXPECT_NEAR(value, function->mean, 0.1);
}

TEST(SmoothFunction, LeavesUnknownValuesOut) {
  std::vector<Point> points;
  const auto with_gaps = Fit(points, [](int64_t m, int64_t n) { return m == n ? kUnknown : 2.0; });
  ASSERT_TRUE(with_gaps.has_value());
  EXPECT_NEAR(with_gaps->At(Likeness(PointOf(Sized(256, 256, 256)), points)), 2, 1e-6);
  std::vector<Point> few;
  EXPECT_FALSE(Fit(few, [](int64_t m, int64_t n) { return m == n && m < 1000 ? 1.0 : kUnknown; })
                   .has_value())
      << "three values";
}

TEST(SmoothFunction, KnowsAlignmentAndTransposes) {
  const Problem even = Sized(256, 256, 256);
  Problem transposed = even;
  transposed.trans_b = true;
  const std::vector<Point> points = {PointOf(even)};
  EXPECT_EQ(Likeness(PointOf(even), points)[0], 1);
  EXPECT_LT(Likeness(PointOf(Sized(256, 257, 256)), points)[0], 0.9F);
  EXPECT_LT(Likeness(PointOf(transposed), points)[0], 0.9F);
}

}  // namespace
}  // namespace gemm
