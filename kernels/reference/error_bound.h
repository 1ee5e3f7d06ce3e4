// The largest error of a right kernel against the exact product.
//
// A sum of k products p_l is computed with k additions in some order that the data does
// not choose. Addition i makes an error of at most u |S_i|, where S_i is a partial sum: the
// sum of some of the products. u is the unit roundoff of the accumulator, twice that where
// it truncates. A few steps are added for tensor cores, which align the products of one
// instruction to the largest. The assumption about the elements decides how large S_i and the sum
// of the errors may be.
//
// Worst case. |S_i| <= sum |p|.
// - Truncation: (1 + u)^k - 1 <= exp(k u) - 1 times sum |p|, from k factors of 1 + u (Higham,
//   Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1, before gamma_k is
//   put in its place, which needs k u < 1).
// - Rounding to nearest: k u sum |p|, without a condition on k u (Jeannerod and Rump,
//   "Improved error bounds for inner products in floating-point arithmetic", SIAM J. Matrix
//   Anal. Appl. 34, 2013). With k u near 1 or more it allows D = 0, and it has to: f16
//   accumulation of ones in one chain stops at 2048, where 2048 + 1 rounds to 2048.
//
// Drawn elements. Those of A (or of B) are independent and have either sign alike. Given the
// magnitudes, the products' signs are then fair coins, so
// - |S_i| <= lambda ||p||_2, by Hoeffding's inequality. The sum of |p| is larger, by about
//   sqrt(k).
// - Truncation depends on the sign of S_i, so its errors may add up: lambda ||p||_2 k u. That
//   is also a bound of the tail, since norms of subgaussian variables add up.
// - Rounding to nearest is even: S + |p| and S - |p| err as much, in opposite directions, for
//   S has no digits to round. Given what was added before, an error has the mean 0, and
//   the sum of the errors is a martingale: lambda sqrt(k) u (lambda ||p||_2), by Azuma's
//   inequality. This is theorem 2.4 of Higham and Mary, "A new approach to probabilistic
//   rounding error analysis" (SIAM J. Sci. Comput. 41, 2019), whose model of roundings as
//   independent of mean 0 is proved here by the signs, with the smaller sums of their
//   "Sharper probabilistic backward error analysis for basic linear algebra kernels with
//   random data" (SIAM J. Sci. Comput. 42, 2020). It does not hold for products of one sign:
//   2048 + 1 errs downwards every time.
// - Errors of the operands (TF32, f32x3) and of single products keep the products' signs:
//   lambda ||p||_2 times their relative size.
//
// Block scales. In each block the product of the scales is rounded, and so is its product with the
// block's sum: 2 u more for each block, of |S_b| times the scales. Worst case: 2 u sum |p|. Drawn
// elements: |S_b| <= lambda ||p_b||_2, and the norms of B blocks add up to at most sqrt(B) ||p||_2.
// Subnormal values may be lost: a scale, the product of two, or a sum that one of them has scaled.
// If one scale, or both together, may overflow with the values that they scale, the bound allows
// anything.
//
// Integers (Compute::kS32). No addition errs, and how a sum wraps is known. So an s32 D has no
// error at all. Another D has the error of rounding accumulators to f32, and those of the epilogue.
#pragma once

#include <limits>

#include "gemm/reference.h"

namespace gemm {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Standard deviations that a sum of independent terms of either sign may have. A sum exceeds them
// with probability 2 exp(-lambda^2 / 2), 3e-8 (Hoeffding, 1963). An error exceeds its bound only if
// partial sums do and the roundings all point one way.
inline constexpr double kLambda = 6;

// The accumulator's type.
DType AccumulatorType(Compute compute);

// The largest absolute error of rounding to a number that is not normal, where
// hardware may flush it to zero. f16 arithmetic keeps subnormals everywhere.
double UnderflowUnit(DType type);

// Products that are added up for one product of elements: each may underflow.
double ProductsOfOne(const Types& types);

// The terms of an element of D, in double precision.
struct ElementTerms {
  double dot = 0;             // sum of a b over k
  double abs_dot = 0;         // sum of |a b|
  double dot_of_squares = 0;  // sum of (a b)^2
  double abs_a = 0;           // sum of |a|, along the row of op(A)
  double abs_b = 0;           // sum of |b|, along the column of op(B)
  // With block scales all of the above are of products that have them.
  double largest_scale_a = 1;  // magnitude, of 1 and the finite ones of the row of op(A)
  double largest_scale_b = 1;
  double c = 0;     // 0 where beta is 0
  double bias = 0;  // 0 where there is none
};

// The element's value and bound. Holds for every kernel of the problem's types:
// accumulation in any order, on tensor cores that truncate, scaled before or after
// other terms, with bias and activation applied in the kernel or in a second
// pass over D. An element whose intermediate results may overflow on a right
// kernel has an infinite tolerance.
Expected BoundElement(const Problem& problem, const ElementTerms& terms, Elements elements);

// The error of a sum of `k` products of any elements, as a multiple of the sum of their
// magnitudes.
double WorstCase(const Types& types, int64_t k);

// The same for drawn elements, as a multiple of the square root of the sum of their squares.
// The bound is the smaller of the two errors: for a small k the worst case is.
double DrawnCase(const Types& types, int64_t k);

}  // namespace gemm
