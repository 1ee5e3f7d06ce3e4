// The largest error of a right kernel against the exact product.
#pragma once

#include <limits>

#include "gemm/reference.h"

namespace gemm {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The terms of an element of D, in double precision.
struct ElementTerms {
  double dot = 0;      // sum of a b over k
  double abs_dot = 0;  // sum of |a b|
  double abs_a = 0;    // sum of |a|, along the row of op(A)
  double abs_b = 0;    // sum of |b|, along the column of op(B)
  double c = 0;        // 0 where beta is 0
  double bias = 0;     // 0 where there is none
};

// The element's value and bound. Holds for every kernel of the problem's types:
// accumulation in any order, on tensor cores that truncate, scaled before or after
// other terms, with bias and activation applied in the kernel or in a second
// pass over D. An element whose intermediate results may overflow on a right
// kernel has an infinite tolerance.
Expected BoundElement(const Problem& problem, const ElementTerms& terms);

// Relative bound of a sum of `k` products against the sum of their magnitudes.
double AccumulationBound(const Types& types, int64_t k);

}  // namespace gemm
