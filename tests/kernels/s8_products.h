// Products of s8 with accumulators that wrap, and their values, computed in 64-bit integers and not
// by the oracle.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/kernels/product_case.h"

namespace gemm::testing {

inline constexpr Types kS8{DType::kS8, DType::kS8, DType::kS32, Compute::kS32};

// An integer cut to 32 bits, in two's complement.
inline int32_t Wrapped(int64_t x) {
  constexpr int64_t kRange = int64_t{1} << 32;
  const int64_t rest = (x % kRange + kRange) % kRange;
  return static_cast<int32_t>(rest >= kRange / 2 ? rest - kRange : rest);
}

inline void Fill(GuardedMatrix& matrix, double value) {
  for (int64_t i = 0; i < matrix.rows(); ++i) {
    for (int64_t j = 0; j < matrix.cols(); ++j) matrix.Set(i, j, value);
  }
}

// op(A) op(B) at an element.
inline int64_t SumAt(const ProductData& data, int64_t i, int64_t j) {
  const Problem& p = data.product.problem;
  const auto* a = static_cast<const int8_t*>(data.a.data());
  const auto* b = static_cast<const int8_t*>(data.b.data());
  int64_t sum = 0;
  for (int64_t l = 0; l < p.k; ++l) {
    const int64_t x = a[p.trans_a ? l * data.a.ld() + i : i * data.a.ld() + l];
    const int64_t y = b[p.trans_b ? j * data.b.ld() + l : l * data.b.ld() + j];
    sum += x * y;
  }
  return sum;
}

// The fault of an s32 D that `run` computes, or of one of f32, which has no epilogue; empty if it
// is right. `data` has the operands.
inline std::string CheckIntegers(const Kernel& kernel, ProductData data, const Runner& run) {
  const absl::Status status = run(kernel, data);
  const Problem& p = data.product.problem;
  std::string wrong = status.ok() ? "" : absl::StrCat(status.ToString(), "; ");
  for (int64_t i = 0; i < p.m && wrong.empty(); ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      const int32_t sum = Wrapped(SumAt(data, i, j));
      double wanted = static_cast<float>(sum);
      if (p.types.d == DType::kS32) {
        int64_t whole = p.alpha == 0 ? 0 : sum;
        if (p.beta != 0) whole += static_cast<int64_t>(data.c.At(i, j));
        if (p.bias == BiasAxis::kColumns) whole += static_cast<int64_t>(data.bias.At(0, j));
        if (p.bias == BiasAxis::kRows) whole += static_cast<int64_t>(data.bias.At(0, i));
        const int32_t wrapped = Wrapped(whole);
        wanted = p.activation == Activation::kRelu && wrapped < 0 ? 0 : wrapped;
      }
      if (data.d.At(i, j) == wanted) continue;
      wrong = absl::StrCat("D(", i, ", ", j, ") is ", data.d.At(i, j), ", not ", wanted, "; ");
      break;
    }
  }
  if (!data.d.GuardIntact()) absl::StrAppend(&wrong, "bytes beside D's elements changed; ");
  return wrong.empty() ? "" : absl::StrCat(wrong, "kernel ", kernel.name);
}

// -128 times -128 as often as makes a sum of 2^31, once more and once less, and a sum that wraps
// more than once. In every kind of layout.
inline std::vector<ProductData> ProductsThatWrap() {
  std::vector<ProductData> products;
  for (const int64_t k : {131071, 131072, 131073, 300000}) {
    ProductCase product;
    product.problem = {
        .m = 3, .n = 4, .k = k, .types = kS8, .trans_a = k % 2 == 0, .trans_b = k % 4 < 2};
    ProductData& data = products.emplace_back(product);
    Fill(data.a, -128);
    Fill(data.b, -128);
    if (data.product.problem.trans_b) {
      data.b.Set(1, 5, 127);
      for (int64_t l = 0; l < k; ++l) data.b.Set(2, l, 127);
    }
  }
  return products;
}

}  // namespace gemm::testing
