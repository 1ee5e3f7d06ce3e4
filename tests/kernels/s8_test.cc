// Integer products on the host: accumulators wrap, and the oracle and the check of products agree.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gemm/check.h"
#include "kernels/check/check_plan.h"
#include "kernels/numeric/wrapping.h"
#include "tests/kernels/check_trial.h"
#include "tests/kernels/s8_products.h"

namespace gemm::testing {
namespace {

constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();
constexpr int32_t kMost = std::numeric_limits<int32_t>::max();

std::vector<const Kernel*> HostKernels() {
  return {*FindKernel("host_openblas"), *FindKernel("host_reference")};
}

TEST(WrappingS32, IsArithmeticModulo2To32) {
  WrappingS32 sum(kMost);
  sum += WrappingS32(1);
  EXPECT_EQ(sum.value(), kLeast);
  EXPECT_EQ((WrappingS32(kLeast) * WrappingS32(-1)).value(), kLeast);
  EXPECT_EQ(WrappingS32(0x1p31).value(), kLeast);
  EXPECT_EQ(WrappingS32(-0x1p31 - 1).value(), kMost);
  EXPECT_EQ(WrappingS32(0x1p52 + 3).value(), 3);
  EXPECT_EQ(static_cast<float>(WrappingS32((1 << 24) + 1)), 0x1p24F);
  EXPECT_TRUE(WrappingS32(-1) < WrappingS32(0));
}

TEST(IntegerProducts, AccumulatorsWrap) {
  for (const Kernel* kernel : HostKernels()) {
    for (const ProductData& data : ProductsThatWrap()) {
      EXPECT_EQ(CheckIntegers(*kernel, data, RunOnHost), "") << data.product;
    }
  }
  ProductData data = ProductsThatWrap()[1];
  ASSERT_TRUE(RunOnHost(*HostKernels()[0], data).ok());
  EXPECT_EQ(data.d.At(0, 0), kLeast);
}

// The whole range of elements and all epilogues; C and the bias wrap too.
TEST(IntegerProducts, AreThoseOf64BitIntegersCutTo32) {
  std::mt19937_64 random(3);
  std::uniform_int_distribution<int64_t> dim(1, 40);
  for (const Kernel* kernel : HostKernels()) {
    for (int round = 0; round < 100; ++round) {
      const ProductData data(RandomCase(kS8, dim(random), dim(random), 3 * dim(random), random));
      EXPECT_EQ(CheckIntegers(*kernel, data, RunOnHost), "") << data.product;
    }
    const ProductData deep(RandomCase(kS8, 5, 6, 4099, random));  // blocks of k
    EXPECT_EQ(CheckIntegers(*kernel, deep, RunOnHost), "") << deep.product;
  }
}

TEST(IntegerProducts, CAndBiasWrap) {
  for (const Kernel* kernel : HostKernels()) {
    for (const double alpha : {0.0, 1.0}) {
      ProductCase product;
      product.problem = {.m = 2,
                         .n = 3,
                         .k = 1,
                         .types = kS8,
                         .alpha = alpha,
                         .beta = 1,
                         .bias = BiasAxis::kColumns};
      ProductData data(product);
      Fill(data.a, 1);
      Fill(data.b, 1);
      Fill(data.c, kMost);
      Fill(data.bias, 2);
      ASSERT_TRUE(RunOnHost(*kernel, data).ok());
      EXPECT_EQ(data.d.At(1, 1), static_cast<double>(kLeast) + 1 + alpha);
      data.product.problem.activation = Activation::kRelu;
      ASSERT_TRUE(RunOnHost(*kernel, data).ok());
      EXPECT_EQ(data.d.At(1, 1), 0);
    }
  }
}

// 2^24 + 1 is no f32: the nearest even one is 2^24, and alpha comes after that.
TEST(IntegerProducts, AccumulatorsAreRoundedToF32BeforeTheEpilogue) {
  for (const Kernel* kernel : HostKernels()) {
    for (const DType d : {DType::kF32, DType::kF16, DType::kBF16}) {
      ProductCase product;
      product.problem = {
          .m = 2, .n = 2, .k = 1025, .types = {DType::kS8, DType::kS8, d, Compute::kS32}};
      ProductData data(product);
      Fill(data.a, -128);
      Fill(data.b, -128);
      for (int64_t i = 0; i < 2; ++i) {
        data.a.Set(i, 1024, 1);
        data.b.Set(1024, i, 1);
      }
      data.product.problem.alpha = 0x1.8p-12;
      ASSERT_TRUE(RunOnHost(*kernel, data).ok());
      EXPECT_EQ(data.d.At(1, 0), 6144) << Name(d);
    }
  }
}

TEST(IntegerProducts, TheOracleHasNoTolerance) {
  for (const ProductData& data : ProductsThatWrap()) {
    const Expected expected =
        ExpectedElement(data.product.problem, data.ForReference(), Elements::kAny, 1, 1);
    EXPECT_EQ(expected.value, Wrapped(SumAt(data, 1, 1)));
    EXPECT_EQ(expected.tolerance, 0);
  }
  ProductData scaled(
      ProductCase{.problem = {.m = 1,
                              .n = 1,
                              .k = 4096,
                              .types = {DType::kS8, DType::kS8, DType::kF32, Compute::kS32}}});
  const Expected expected =
      ExpectedElement(scaled.product.problem, scaled.ForReference(), Elements::kAny, 0, 0);
  EXPECT_EQ(expected.value, SumAt(scaled, 0, 0));
  EXPECT_LT(expected.tolerance, 8 * 0x1p-24 * std::abs(expected.value) + 1e-30);
}

// Checks a right product, and the same one with an element off by one, for any signs.
void ExpectExactCheck(ProductData& data) {
  ASSERT_TRUE(RunOnHost(**FindKernel("host_openblas"), data).ok());
  const Problem& p = data.product.problem;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const CheckOutcome right = CheckOn(data, seed).outcome;
    EXPECT_TRUE(right.likely()) << data.product << " " << right.of_likely;
    EXPECT_EQ(right.uncovered_rows, 0);
    const double before = data.d.At(p.m - 1, p.n / 2);
    data.d.Set(p.m - 1, p.n / 2, before + (before == kMost ? -1 : 1));
    EXPECT_FALSE(CheckOn(data, seed).outcome.possible()) << data.product;
    data.d.Set(p.m - 1, p.n / 2, before);
  }
}

TEST(IntegerProducts, ACheckFindsWhateverIsOffByOne) {
  for (ProductData& data : ProductsThatWrap()) ExpectExactCheck(data);
  std::mt19937_64 random(4);
  for (int round = 0; round < 20; ++round) {
    ProductCase product = RandomCase(kS8, 9, 17, 40, random);
    product.problem.activation = Activation::kNone;
    product.c_is_d = false;
    ProductData data(product);
    ExpectExactCheck(data);
  }
}

// Two of a row that are off by 2^31, which is its own negative modulo 2^32.
TEST(IntegerProducts, ACheckFindsWhatCancelsModulo2To32) {
  ProductCase product;
  product.problem = {.m = 3, .n = 6, .k = 40, .types = kS8};
  ProductData data(product);
  ASSERT_TRUE(RunOnHost(**FindKernel("host_openblas"), data).ok());
  for (const int64_t column : {1, 4}) {
    const double right = data.d.At(2, column);
    data.d.Set(2, column, right < 0 ? right + 0x1p31 : right - 0x1p31);
  }
  int found = 0;  // each seed has an even chance
  for (uint64_t seed = 1; seed <= 8; ++seed)
    found += CheckOn(data, seed).outcome.possible() ? 0 : 1;
  EXPECT_GE(found, 2);
}

// Sums over so many columns that f64 lacks some of the integers.
TEST(IntegerProducts, ACheckOfVeryLongRowsIsExact) {
  ProductCase product;
  product.problem = {.m = 2, .n = 1'600'000, .k = 2, .types = kS8, .beta = 1};
  EXPECT_TRUE(MakeRowRule(product.problem, 1).pairs);
  ProductData data(product);
  ASSERT_TRUE(RunOnHost(**FindKernel("host_openblas"), data).ok());
  EXPECT_TRUE(CheckOn(data, 1).outcome.likely());
  data.d.Set(1, 77, data.d.At(1, 77) - 1);
  EXPECT_FALSE(CheckOn(data, 1).outcome.possible());
  product.problem.n = 1000;
  EXPECT_FALSE(MakeRowRule(product.problem, 1).pairs);
}

// Accumulators of a D of floats wrap too, so that a residual may be off by multiples of alpha 2^32.
TEST(IntegerProducts, ACheckTakesWrappedAccumulatorsOfFloats) {
  ProductCase product;
  product.problem = {.m = 4,
                     .n = 5,
                     .k = 300000,
                     .types = {DType::kS8, DType::kS8, DType::kF32, Compute::kS32},
                     .alpha = 0x1p-9};
  ProductData data(product);
  Fill(data.a, -128);
  Fill(data.b, -128);
  ASSERT_TRUE(RunOnHost(**FindKernel("host_openblas"), data).ok());
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_TRUE(CheckOn(data, seed).outcome.likely());
    const double before = data.d.At(2, 2);
    data.d.Set(2, 2, before * 1.001 + 10);
    EXPECT_FALSE(CheckOn(data, seed).outcome.likely());
    data.d.Set(2, 2, before);
  }
}

}  // namespace
}  // namespace gemm::testing
