// Whether the bound of fp8_sums.h tells rows that promote from rows that do not.
#include "tests/kernels/fp8_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/kernels/product_case.h"

namespace gemm::testing {
namespace {

// A sum as a tensor core adds it, kFp8Step products at a time.
double AddStep(double sum, const double* products) {
  double largest = std::abs(sum);
  for (int64_t i = 0; i < kFp8Step; ++i) largest = std::max(largest, std::abs(products[i]));
  if (largest == 0) return 0;
  const double unit = std::ldexp(1, std::ilogb(largest) - kFp8Bits);
  double added = std::trunc(sum / unit);
  for (int64_t i = 0; i < kFp8Step; ++i) added += std::trunc(products[i] / unit);
  return added * unit;
}

// The root mean square of errors over that of sums of k drawn e4m3 products, where a row promotes
// after `promoted` of them.
double ErrorOf(int64_t k, int64_t promoted) {
  constexpr int64_t kEdge = 24;
  const Types types{DType::kE4M3, DType::kE4M3, DType::kF32, Compute::kF32};
  const ProductData data({.problem = {.m = kEdge, .n = kEdge, .k = k, .types = types}});
  double errors = 0, sums = 0;
  std::vector<double> products(static_cast<size_t>(k));
  for (int64_t i = 0; i < kEdge; ++i) {
    for (int64_t j = 0; j < kEdge; ++j) {
      double exact = 0, total = 0, part = 0;
      for (int64_t p = 0; p < k; ++p) {
        products[static_cast<size_t>(p)] = data.a.At(i, p) * data.b.At(p, j);
        exact += products[static_cast<size_t>(p)];
      }
      for (int64_t p = 0; p < k; p += kFp8Step) {
        part = AddStep(part, products.data() + p);
        if ((p + kFp8Step) % promoted != 0) continue;
        total += part;
        part = 0;
      }
      errors += (total - exact) * (total - exact);
      sums += exact * exact;
    }
  }
  return std::sqrt(errors / sums);
}

TEST(Fp8Sums, OfPromotedPartsErrAlikeForAnyDepth) {
  for (const int64_t k : {128, 1024, 16384}) {
    const double error = ErrorOf(k, kFp8Promoted);
    EXPECT_LT(error, kLargestFp8Error / 4) << k;
    EXPECT_GT(error, kLargestFp8Error / 6) << k;
  }
}

TEST(Fp8Sums, AreFoundWhereNothingIsPromoted) {
  EXPECT_GT(ErrorOf(16384, 16384), 5 * kLargestFp8Error);
}

TEST(Fp8Sums, AreFoundWhereOneInSixteenIsPromoted) {
  EXPECT_GT(ErrorOf(16384, 16 * kFp8Promoted), kLargestFp8Error);
}

}  // namespace
}  // namespace gemm::testing
