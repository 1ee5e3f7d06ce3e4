// Block scales: the oracle against an explicit sum, and the defects that it must see.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "tests/kernels/product_case.h"

namespace gemm::testing {
namespace {

constexpr Types kTypes{DType::kE4M3, DType::kE5M2, DType::kF32, Compute::kF32};
constexpr ScaleBlocks kKinds[] = {ScaleBlocks::kLines, ScaleBlocks::kTiles};

// The scale of an element of op(A) (op(B)) in row (column) `outer`, from where it is stored.
double ScaleAt(const ProductCase& product, ScaleBlocks blocks, const GuardedMatrix& scales,
               int64_t outer, int64_t k) {
  const int64_t line = blocks == ScaleBlocks::kTiles ? outer / 128 : outer;
  return product.scales_by_block ? scales.At(k / 128, line) : scales.At(line, k / 128);
}

// (A B)_ij, each element times its scale.
double Product(const ProductData& data, int64_t i, int64_t j) {
  const Problem& p = data.product.problem;
  double sum = 0;
  for (int64_t k = 0; k < p.k; ++k) {
    const double a = p.trans_a ? data.a.At(k, i) : data.a.At(i, k);
    const double b = p.trans_b ? data.b.At(j, k) : data.b.At(k, j);
    sum += a * ScaleAt(data.product, p.scales_a, data.scales_a, i, k) * b *
           ScaleAt(data.product, p.scales_b, data.scales_b, j, k);
  }
  return sum;
}

// `change` alters the operands of a right product before it is compared again.
double WorstRatio(const ProductData& data, const std::function<void(ProductData&)>& change) {
  ProductData other = data;
  change(other);
  const ProductCase& product = other.product;
  return CompareWithReference(product.problem, other.ForReference(), product.elements, 1 << 20, 1)
      .worst_ratio;
}

ProductData Computed(const ProductCase& product) {
  ProductData data(product);
  EXPECT_TRUE(RunOnHost(**FindKernel("host_openblas"), data).ok());
  return data;
}

ProductCase Plain(ScaleBlocks of_a, ScaleBlocks of_b, std::mt19937_64& random) {
  ProductCase product;
  product.problem = {.m = 140, .n = 131, .k = 300, .types = kTypes};
  return WithBlockScales(product, of_a, of_b, random);
}

TEST(BlockScales, ValuesAreThoseOfTheSumWrittenOut) {
  std::mt19937_64 random(3);
  for (const ScaleBlocks of_a : kKinds) {
    for (const ScaleBlocks of_b : kKinds) {
      for (int round = 0; round < 4; ++round) {
        ProductCase product = Plain(of_a, of_b, random);
        product.problem.trans_a = round % 2 == 1;
        product.problem.trans_b = round / 2 == 1;
        const ProductData data(product);
        const Operands host = data.ForReference();
        ExpectedElements expected(product.problem, host, Elements::kDrawn);
        for (int64_t i = 0; i < product.problem.m; i += 9) {
          for (int64_t j = 0; j < product.problem.n; j += 13) {
            const double sum = Product(data, i, j);
            ASSERT_NEAR(expected.At(i, j).value, sum, 1e-12 * (1 + std::abs(sum))) << product;
          }
        }
      }
    }
  }
}

// A kernel that mixes up scales, or leaves some out, is caught. A right one is not.
TEST(BlockScales, WhatIsWrongWithThemIsSeen) {
  std::mt19937_64 random(4);
  for (const ScaleBlocks of_a : kKinds) {
    for (const ScaleBlocks of_b : kKinds) {
      ProductCase product = Plain(of_a, of_b, random);
      product.elements = Elements::kExact;
      const ProductData data = Computed(product);
      EXPECT_LE(WorstRatio(data, [](ProductData&) {}), 1);
      EXPECT_GT(WorstRatio(data, [](ProductData& d) { d.scales_a.FillUniform(1, 1, 1.001); }), 1);
      EXPECT_GT(WorstRatio(data,
                           [](ProductData& d) {
                             const int64_t last = d.scales_b.rows() - 1;
                             const int64_t at = d.scales_b.cols() - 1;
                             d.scales_b.Set(last, at, -d.scales_b.At(last, at));
                           }),
                1)
          << "the sign of the last scale of B";
      EXPECT_GT(WorstRatio(data,
                           [](ProductData& d) {
                             const double first = d.scales_a.At(0, 0);
                             d.scales_a.Set(0, 0, d.scales_a.At(0, 1));
                             d.scales_a.Set(0, 1, first);
                           }),
                1)
          << "two scales of A swapped";
    }
  }
}

// A defect is seen by random elements as well as without scales.
TEST(BlockScales, TheBoundIsAsTightAsWithoutThem) {
  std::mt19937_64 random(7);
  const auto resolution = [](const ProductCase& product) {
    const ProductData data(product);
    return CompareWithReference(product.problem, data.ForReference(), Elements::kDrawn, 1 << 20, 1)
        .resolution;
  };
  const ProductCase scaled = Plain(ScaleBlocks::kLines, ScaleBlocks::kTiles, random);
  ProductCase plain = scaled;
  plain.problem.scales_a = plain.problem.scales_b = ScaleBlocks::kNone;
  EXPECT_LT(resolution(scaled), 2 * resolution(plain));
}

// Scales that are too large allow anything, also beside infinite ones.
TEST(BlockScales, OnesBeyondF32AllowAnythingBesideInfiniteOnes) {
  std::mt19937_64 random(8);
  ProductCase product = Plain(ScaleBlocks::kLines, ScaleBlocks::kLines, random);
  product.scales_by_block = false;
  ProductData data(product);
  const auto tolerance = [&](double last) {
    data.scales_a.FillUniform(1, 1, 2);
    data.scales_b.FillUniform(2, 1, 2);
    data.scales_a.Set(0, 0, std::numeric_limits<double>::infinity());
    data.scales_a.Set(0, 1, last);
    return ExpectedElement(data.product.problem, data.ForReference(), Elements::kAny, 0, 0)
        .tolerance;
  };
  EXPECT_TRUE(std::isinf(tolerance(1e36)));
  EXPECT_TRUE(std::isfinite(tolerance(1)));
}

// A scale that is not finite affects every element that it scales, and no other.
TEST(BlockScales, OneThatIsNotFiniteGoesWhereItBelongs) {
  std::mt19937_64 random(5);
  ProductCase product = Plain(ScaleBlocks::kLines, ScaleBlocks::kTiles, random);
  product.scales_by_block = false;
  ProductData data(product);
  data.scales_a.Set(7, 1, std::nan(""));
  ASSERT_TRUE(RunOnHost(**FindKernel("host_openblas"), data).ok());
  EXPECT_LE(WorstRatio(data, [](ProductData&) {}), 1);
  for (int64_t i = 0; i < product.problem.m; ++i) {
    EXPECT_EQ(std::isnan(data.d.At(i, 5)), i == 7) << i;
  }
}

// Scales so large that the order of their multiplications matters allow anything, others do not.
TEST(BlockScales, OnlyScalesBeyondF32AllowAnything) {
  std::mt19937_64 random(6);
  const auto tolerance = [&random](double scale) {
    ProductData data(Plain(ScaleBlocks::kTiles, ScaleBlocks::kTiles, random));
    data.scales_a.FillUniform(1, scale, 1.1 * scale);
    data.scales_b.FillUniform(1, 0.5, 1.0);
    return ExpectedElement(data.product.problem, data.ForReference(), Elements::kAny, 0, 0)
        .tolerance;
  };
  EXPECT_TRUE(std::isinf(tolerance(1e30)));
  EXPECT_TRUE(std::isfinite(tolerance(1e20)));
}

}  // namespace
}  // namespace gemm::testing
