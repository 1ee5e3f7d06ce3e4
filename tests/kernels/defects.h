// Products of 32 x 32 elements, and defects to put into them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "tests/kernels/product_case.h"

namespace gemm::testing {

inline constexpr int64_t kDefectSize = 32;  // rows and columns of D

// A right product in the arithmetic of its types, with the sums that defects need.
class Product {
 public:
  // Each row of A keeps one element of `thinning`, and is 0 elsewhere.
  explicit Product(const ProductCase& product, int64_t thinning = 1);

  const Problem& problem() const { return data_.product.problem; }
  const ProductData& data() const { return data_; }
  double D(int64_t i, int64_t j) const { return data_.d.At(i, j); }
  double C(int64_t i, int64_t j) const { return data_.c.At(i, j); }
  double Bias(int64_t j) const { return data_.bias.At(0, j); }

  // alpha times the products from `from` up to `to`.
  double Part(int64_t i, int64_t j, int64_t from, int64_t to) const;

 private:
  ProductData data_;
};

// D(i, j) with the defect.
using Defective = double (*)(const Product&, int64_t i, int64_t j);

struct Defect {
  const char* name;
  Defective apply;
  bool large = false;     // as large as D
  bool epilogue = false;  // of alpha, C or the bias
  bool of_alpha = false;  // none where alpha is 1
};

absl::Span<const Defect> Defects();

// D with the defect, or as it is without one: kDefectSize rows without gaps.
std::vector<std::byte> ResultOf(const Product& product, const Defect* defect);

}  // namespace gemm::testing
