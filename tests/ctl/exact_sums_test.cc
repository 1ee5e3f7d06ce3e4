// Which products have one right result, whatever the order of their additions.
#include "client/ctl/checks/exact_sums.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace gemmd::ctl {
namespace {

// 2 x 3 times 3 x 2 of small integers.
struct Integers {
  std::vector<float> a = {1, -1, 0, 2, 1, -2}, b = {1, 1, 0, -1, 3, 0}, c = {4, -4, 1, 0},
                     bias = {3, -3};
  gemm::Problem problem = {
      .m = 2,
      .n = 2,
      .k = 3,
      .types = {gemm::DType::kF32, gemm::DType::kF32, gemm::DType::kF32, gemm::Compute::kF32},
      .alpha = 0.5,
      .beta = -2,
      .bias = gemm::BiasAxis::kColumns};

  bool AreExact() const {
    return SumsAreExact(problem, {.a = a.data(),
                                  .lda = problem.trans_a ? problem.m : problem.k,
                                  .b = b.data(),
                                  .ldb = problem.trans_b ? problem.k : problem.n,
                                  .c = c.data(),
                                  .ldc = problem.n,
                                  .bias = bias.data()});
  }
};

TEST(ExactSumsTest, SmallIntegersWithPowersOfTwo) {
  EXPECT_TRUE(Integers().AreExact());
  Integers leaky;
  leaky.problem.activation = gemm::Activation::kLeakyRelu;
  leaky.problem.leaky_slope = -0.25;
  EXPECT_TRUE(leaky.AreExact());
}

// What is not read does not matter.
TEST(ExactSumsTest, NotOfWhatTheProductLeavesOut) {
  Integers integers;
  integers.c[1] = integers.bias[0] = 0.5;
  EXPECT_FALSE(integers.AreExact());
  integers.problem.beta = 0;
  integers.problem.bias = gemm::BiasAxis::kNone;
  EXPECT_TRUE(integers.AreExact());
}

TEST(ExactSumsTest, OneThatIsNoIntegerIsEnough) {
  struct Change {
    const char* name;
    std::function<void(Integers&)> apply;
  };
  const Change changes[] = {
      {"last of A", [](Integers& x) { x.a[5] = 0.5; }},
      {"last of B", [](Integers& x) { x.b[5] = 0.5; }},
      {"C", [](Integers& x) { x.c[3] = 0.5; }},
      {"bias", [](Integers& x) { x.bias[1] = 0.5; }},
      {"NaN", [](Integers& x) { x.a[0] = std::numeric_limits<float>::quiet_NaN(); }},
      {"infinity", [](Integers& x) { x.b[0] = std::numeric_limits<float>::infinity(); }},
      {"alpha", [](Integers& x) { x.problem.alpha = 1.5; }},
      {"alpha 0", [](Integers& x) { x.problem.alpha = 0; }},
      {"beta", [](Integers& x) { x.problem.beta = 0.3; }},
      {"GELU", [](Integers& x) { x.problem.activation = gemm::Activation::kGelu; }},
      {"slope",
       [](Integers& x) {
         x.problem.activation = gemm::Activation::kLeakyRelu;
         x.problem.leaky_slope = 0.1;
       }},
  };
  for (const Change& change : changes) {
    Integers integers;
    change.apply(integers);
    EXPECT_FALSE(integers.AreExact()) << change.name;
  }
}

TEST(ExactSumsTest, SumsEndWhereTheAccumulatorLosesIntegers) {
  struct Bound {
    const char* name;
    gemm::Types types;
    int64_t largest;
  };
  const auto kF32 = gemm::DType::kF32;
  const Bound bounds[] = {
      {"f16", {kF32, kF32, kF32, gemm::Compute::kF16}, 1 << 11},
      {"f32", {kF32, kF32, kF32, gemm::Compute::kF32}, 1 << 24},
      {"TF32 operands", {kF32, kF32, kF32, gemm::Compute::kTF32}, 1 << 11},
      {"high numbers of f32x3", {kF32, kF32, kF32, gemm::Compute::kF32x3}, 1 << 11},
  };
  for (const Bound& bound : bounds) {
    Integers integers;
    integers.problem = {.m = 1, .n = 1, .k = 1, .types = bound.types};
    integers.b = {1};
    integers.a = {static_cast<float>(bound.largest)};
    EXPECT_TRUE(integers.AreExact()) << bound.name;
    integers.a = {static_cast<float>(bound.largest + 2)};
    EXPECT_FALSE(integers.AreExact()) << bound.name;
  }
  // Sums of magnitudes: 1024 - 1024 + 1 may be 2049 on the way in another order.
  Integers integers;
  integers.problem = {.m = 1, .n = 1, .k = 3, .types = bounds[0].types};
  integers.b = {1, 1, 1};
  integers.a = {1024, -1024, 0};
  EXPECT_TRUE(integers.AreExact());
  integers.a = {1024, -1024, 1};
  EXPECT_FALSE(integers.AreExact());
}

// Of s8: 1 x k times k x 1, all elements -128. Each product is 2^14.
TEST(ExactSumsTest, SumsOfIntegersEndWhereTheyMayWrap) {
  struct Bound {
    gemm::DType d;
    int64_t largest_k;
  };
  const Bound bounds[] = {{gemm::DType::kS32, (1 << 17) - 1}, {gemm::DType::kF32, 1 << 10}};
  for (const Bound& bound : bounds) {
    const std::vector<int8_t> line(static_cast<size_t>(bound.largest_k) + 1, -128);
    gemm::Problem problem = {
        .m = 1,
        .n = 1,
        .k = bound.largest_k,
        .types = {gemm::DType::kS8, gemm::DType::kS8, bound.d, gemm::Compute::kS32}};
    const auto exact = [&] {
      return SumsAreExact(problem,
                          {.a = line.data(), .lda = problem.k, .b = line.data(), .ldb = 1});
    };
    EXPECT_TRUE(exact()) << bound.largest_k;
    ++problem.k;
    EXPECT_FALSE(exact()) << problem.k;
  }
}

// Lines along k: rows of A and columns of B, wherever they lie.
TEST(ExactSumsTest, SumsAreAlongKInEveryLayout) {
  for (const bool transposed : {false, true}) {
    Integers integers;
    // m = n = 600 and k = 4: a line along the other side would be too long.
    integers.problem = {
        .m = 600,
        .n = 600,
        .k = 4,
        .types = {gemm::DType::kF32, gemm::DType::kF32, gemm::DType::kF32, gemm::Compute::kF16},
        .trans_a = transposed,
        .trans_b = transposed};
    integers.a.assign(2400, 2);
    integers.b.assign(2400, 2);
    EXPECT_TRUE(integers.AreExact());
    integers.problem.k = 600;
    integers.problem.m = integers.problem.n = 4;
    EXPECT_FALSE(integers.AreExact()) << "600 times 2 times 2";
  }
}

// Of each term and of the sum of all, in units of the smallest factor.
TEST(ExactSumsTest, TheEpilogueIsPartOfTheSum) {
  Integers integers;
  integers.problem.beta = 0x1p-20;
  integers.problem.bias = gemm::BiasAxis::kNone;
  integers.problem.alpha = 1;
  EXPECT_TRUE(integers.AreExact());
  integers.problem.beta = 0x1p-23;
  EXPECT_FALSE(integers.AreExact()) << "8 and 2^-23 together are 27 bits";
}

}  // namespace
}  // namespace gemmd::ctl
