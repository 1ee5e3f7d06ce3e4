// The generator: its known values, its distribution, and its independence of
// layout.
#include "gemm/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/generate/element_function.h"
#include "tests/kernels/product_case.h"

namespace gemm {
namespace {

constexpr long double kPi = 3.14159265358979323846264338327950288L;

// The published first outputs of SplitMix64 for two seeds.
TEST(SplitMix64, KnownOutputs) {
  const auto output = [](uint64_t seed, uint64_t t) {
    return Mix64(seed + (t + 1) * 0x9E3779B97F4A7C15u);
  };
  EXPECT_EQ(output(0, 0), 0xE220A8397B1DCDAFu);
  EXPECT_EQ(output(0, 1), 0x6E789E6AA1B965F4u);
  EXPECT_EQ(output(0, 2), 0x06C45D188009454Fu);
  EXPECT_EQ(output(1234567, 0), 6457827717110365317u);
  EXPECT_EQ(output(1234567, 1), 3203168211198807973u);
  EXPECT_EQ(UnitDraw(0, 0), 0x1.c4415072f63b9p-1);
}

TEST(PortableLog, AgreesWithTheLibrary) {
  std::mt19937_64 random(1);
  const auto check = [](double x) {
    const long double exact = std::log(static_cast<long double>(x));
    EXPECT_NEAR(PortableLog(x), static_cast<double>(exact),
                1e-15 * std::abs(static_cast<double>(exact)))
        << x;
  };
  for (int i = 0; i < 200000; ++i) check(static_cast<double>((random() >> 11) + 1) * 0x1p-53);
  for (int e = -53; e < 0; ++e) {
    check(std::ldexp(1.0, e));
    check(1.0 - std::ldexp(1.0, e));
  }
  EXPECT_EQ(PortableLog(1.0), 0.0);
}

TEST(PortableCosTurn, AgreesWithTheLibrary) {
  std::mt19937_64 random(2);
  const auto check = [](double u) {
    // The distance to the nearest zero of the cosine, so that the reference is
    // accurate there.
    const long double from_zero =
        u < 0.5 ? static_cast<long double>(u) - 0.25L : 0.75L - static_cast<long double>(u);
    const long double exact = -std::sin(2 * kPi * from_zero);
    EXPECT_NEAR(PortableCosTurn(u), static_cast<double>(exact),
                1e-15 * std::abs(static_cast<double>(exact)))
        << u;
  };
  for (int i = 0; i < 200000; ++i) check(static_cast<double>(random() >> 11) * 0x1p-53);
  for (const double near : {0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875}) {
    check(near);
    check(near - 0x1p-53);
    check(near + 0x1p-53);
  }
  check(0);
  check(1 - 0x1p-53);
}

struct Moments {
  double mean = 0;
  double stddev = 0;
};

Moments Measure(const GeneratorSpec& spec, int64_t rows, int64_t cols) {
  std::vector<double> data(static_cast<size_t>(rows * cols));
  EXPECT_TRUE(GenerateHost(spec, {data.data(), DType::kF64, rows, cols, cols * 8, false}).ok());
  Moments m;
  for (const double x : data) m.mean += x / static_cast<double>(data.size());
  for (const double x : data) {
    m.stddev += (x - m.mean) * (x - m.mean) / static_cast<double>(data.size());
  }
  m.stddev = std::sqrt(m.stddev);
  return m;
}

TEST(Generate, UniformHasItsMoments) {
  const Moments m = Measure({42, Distribution::kUniform, -3, 5}, 500, 401);
  EXPECT_NEAR(m.mean, 1.0, 0.03);
  EXPECT_NEAR(m.stddev, 8 / std::sqrt(12.0), 0.02);
}

TEST(Generate, NormalHasItsMoments) {
  const Moments m = Measure({42, Distribution::kNormal, 2, 0.5}, 500, 401);
  EXPECT_NEAR(m.mean, 2.0, 0.006);
  EXPECT_NEAR(m.stddev, 0.5, 0.005);
}

// As in SplitMix64.KnownOutputs: not by UnitDraw, which would have the same defect.
TEST(Generate, DrawsThePublishedOutputsOfItsSeed) {
  constexpr uint64_t kOutputs[] = {6457827717110365317u, 3203168211198807973u};
  float data[2];
  ASSERT_TRUE(
      GenerateHost({1234567, Distribution::kUniform, 0, 1}, {data, DType::kF32, 1, 2, 8, false})
          .ok());
  for (int t = 0; t < 2; ++t) {
    EXPECT_EQ(data[t], static_cast<float>(static_cast<double>(kOutputs[t] >> 11) * 0x1p-53)) << t;
  }
}

TEST(Generate, FollowsItsDefinition) {
  float data[6];
  ASSERT_TRUE(
      GenerateHost({9, Distribution::kUniform, -1, 3}, {data, DType::kF32, 2, 3, 12, false}).ok());
  for (uint64_t t = 0; t < 6; ++t) {
    EXPECT_EQ(data[t], static_cast<float>(-1 + 4 * UnitDraw(9, t)));
  }
  ASSERT_TRUE(
      GenerateHost({9, Distribution::kNormal, 1, 2}, {data, DType::kF32, 2, 3, 12, false}).ok());
  for (uint64_t t = 0; t < 6; ++t) {
    const double u = UnitDraw(9, 2 * t), v = UnitDraw(9, 2 * t + 1);
    const double pi = static_cast<double>(kPi);
    EXPECT_FLOAT_EQ(data[t], static_cast<float>(1 + 2 * std::sqrt(-2 * std::log(1 - u)) *
                                                        std::cos(2 * pi * v)));
  }
}

class GenerateType : public ::testing::TestWithParam<DType> {};

TEST_P(GenerateType, ElementsDoNotDependOnTheLayout) {
  constexpr int64_t kRows = 7, kCols = 5, kPitch = 96;
  const DType type = GetParam();
  for (const Distribution distribution : {Distribution::kUniform, Distribution::kNormal}) {
    const GeneratorSpec spec{3, distribution, 0, 1};
    std::vector<std::byte> rows(kRows * kPitch), cols(kCols * kPitch);
    ASSERT_TRUE(GenerateHost(spec, {rows.data(), type, kRows, kCols, kPitch, false}).ok());
    ASSERT_TRUE(GenerateHost(spec, {cols.data(), type, kRows, kCols, kPitch, true}).ok());
    const int64_t ld = kPitch / static_cast<int64_t>(SizeOf(type));
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < kCols; ++j) {
        EXPECT_EQ(LoadElement(rows.data(), i * ld + j, type),
                  LoadElement(cols.data(), j * ld + i, type));
      }
    }
  }
}

// Every type rounds the same f32.
TEST_P(GenerateType, RoundsTheF32Value) {
  const DType type = GetParam();
  testing::GuardedMatrix typed(9, 13, type, 16), f32(9, 13, DType::kF32, 0);
  typed.FillNormal(5);
  f32.FillNormal(5);
  double rounded[1];
  for (int64_t i = 0; i < 9; ++i) {
    for (int64_t j = 0; j < 13; ++j) {
      StoreElement(rounded, 0, type, f32.At(i, j));
      EXPECT_EQ(typed.At(i, j), LoadElement(rounded, 0, type));
    }
  }
  EXPECT_TRUE(typed.GuardIntact());
}

INSTANTIATE_TEST_SUITE_P(Types, GenerateType,
                         ::testing::Values(DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
                                           DType::kE4M3, DType::kE5M2),
                         [](const auto& info) { return std::string(Name(info.param)); });

TEST(Generate, OtherTypesAreUnimplemented) {
  std::byte data[64];
  const absl::Status status = GenerateHost({}, {data, DType::kS32, 1, 4, 16, false});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(CheckGenerated(DType::kS32), status);
}

// Values beyond the range become its ends.
TEST(Generate, EndsWhereItIsStopped) {
  std::vector<float> values(8, 7);
  const GeneratorTarget target = {
      .data = values.data(), .type = DType::kF32, .rows = 2, .cols = 4, .pitch_bytes = 16};
  const std::atomic<bool> stop{true};
  EXPECT_EQ(GenerateHost({}, target, &stop).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(values, std::vector<float>(8, 7));
}

TEST(Generate, IntegersAreRoundedAndSaturate) {
  constexpr int64_t kCount = 20000;
  std::vector<int8_t> s8(kCount);
  std::vector<double> f64(kCount);
  const GeneratorSpec spec{.seed = 5, .low_or_mean = -150, .high_or_stddev = 150};
  ASSERT_TRUE(GenerateHost(spec, {s8.data(), DType::kS8, 1, kCount, kCount, false}).ok());
  ASSERT_TRUE(GenerateHost(spec, {f64.data(), DType::kF64, 1, kCount, 8 * kCount, false}).ok());
  int lowest = 0, highest = 0;
  for (size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(s8[i], std::clamp(std::nearbyint(f64[i]), -128.0, 127.0)) << f64[i];
    lowest += s8[i] == -128 ? 1 : 0;
    highest += s8[i] == 127 ? 1 : 0;
  }
  EXPECT_GT(lowest, 1000);
  EXPECT_GT(highest, 1000);
}

}  // namespace
}  // namespace gemm
