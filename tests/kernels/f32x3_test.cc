// f32 numbers as sums of two TF32 numbers.
#include "kernels/hopper/f32x3.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace gemm {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kMax = std::numeric_limits<float>::max();

double ValueOf(uint32_t bits) { return std::bit_cast<float>(bits); }

// The numbers as tensor cores read them.
struct Numbers {
  double high;
  double low;
};
Numbers NumbersOf(float x) {
  const HighLow split = CutToTf32(Split(std::bit_cast<uint32_t>(x)));
  return {ValueOf(split.high), ValueOf(split.low)};
}

// Finite numbers whose low numbers are normal.
std::vector<float> Normal() {
  std::vector<float> all = {1,
                            -1,
                            1.5,
                            1 + 0x1p-23F,
                            1 + 0x1p-11F,
                            1 + 0x1.8p-10F,
                            2 - 0x1p-23F,
                            kMax,
                            -kMax,
                            0x1.ffdffep127F,
                            0x1.ffdp127F,
                            0x1p-100F};
  std::mt19937 random(5);
  while (all.size() < 200000) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isfinite(x) && std::abs(x) >= 0x1p-102F) all.push_back(x);
  }
  return all;
}

TEST(F32x3, NumbersOfAnElementAddUpToIt) {
  for (const float x : Normal()) {
    const double size = std::abs(x);
    const Numbers numbers = NumbersOf(x);
    ASSERT_TRUE(std::isfinite(numbers.high)) << x;
    if (size < 0x1.ffep127) {
      ASSERT_LE(std::abs(numbers.high + numbers.low - x), 0x1p-23 * size) << x;
      ASSERT_LE(std::abs(numbers.low), 0x1p-11 * size) << x;
    } else {
      ASSERT_LE(std::abs(numbers.high + numbers.low - x), 0x1p-22 * size) << x;
      ASSERT_LT(std::abs(numbers.low), 0x1.01p-11 * size) << x;
    }
  }
}

// The parts left out of products must not add up over products of one sign.
TEST(F32x3, WhatIsLeftOutHasEitherSign) {
  double sum = 0, magnitudes = 0;
  const std::vector<float> all = Normal();
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    const double share = NumbersOf(all[i]).low / all[i] * (NumbersOf(all[i + 1]).low / all[i + 1]);
    sum += share;
    magnitudes += std::abs(share);
  }
  EXPECT_LT(std::abs(sum), 0.02 * magnitudes);
}

TEST(F32x3, SubnormalNumbersAreWithinTheLeastNormalOne) {
  std::mt19937 random(6);
  for (int i = 0; i < 10000; ++i) {
    const uint32_t bits = static_cast<uint32_t>(random()) & 0x80ffffff;  // up to 2^-125
    const float x = std::bit_cast<float>(bits);
    const Numbers numbers = NumbersOf(x);
    ASSERT_LE(std::abs(numbers.high + numbers.low - x), 0x1p-137) << x;
  }
  EXPECT_EQ(NumbersOf(0).low, 0);
  EXPECT_EQ(NumbersOf(-0.0F).high, 0);
}

// One product of elements by the three of their numbers, added in the order of the kernel.
double Product(float x, float y) {
  const Numbers a = NumbersOf(x), b = NumbersOf(y);
  return a.low * b.high + a.high * b.low + a.high * b.high;
}

TEST(F32x3, InfinitiesAndNanPropagate) {
  // A NaN whose payload is in the bits that are cut.
  const auto nan = std::bit_cast<float>(0x7f800001U);
  const std::vector<float> all = {kInf,  -kInf,    nan,      -nan,    0,    -0.0F, 1,
                                  -2.5F, 1.00001F, 3.14159F, -1e-20F, kMax, -kMax};
  for (const float x : all) {
    for (const float y : all) {
      if (std::isfinite(x) && std::isfinite(y)) continue;
      const double expected = static_cast<double>(x) * y;
      const double product = Product(x, y);
      EXPECT_EQ(std::isnan(product), std::isnan(expected)) << x << " times " << y;
      if (!std::isnan(expected)) {
        EXPECT_EQ(product, expected) << x << " times " << y;
      }
    }
  }
}

}  // namespace
}  // namespace gemm
