// How far a right product may be from D r = alpha A (B r) + beta C r + bias r, row by row.
//
// Let e_j be the error of element j of a row, with |e_j| <= t_j. The residual of the row is the
// sum of r_j e_j with r_j = +-1 drawn after D was computed. For any operands it is below lambda
// ||t||_2, except with a probability of 2 exp(-lambda^2 / 2) (Hoeffding). It is below sqrt(n)
// ||t||_2 in any case. lambda is 8: 2.5e-14.
//
// ||t||_2 follows from the bound of an element (kernels/reference/error_bound.h) by norms of
// rows, which the check sums up on its way. With b_p the row p of op(B):
//
// - The possible bound has the worst case of an accumulation, W times (|A||B|)_ij. The row's
//   norm of that is at most W sum_p |a_ip| ||b_p||_2.
// - The likely bound. If the order of the terms has no meaning, a partial sum is its share of the
//   whole sum, in proportion, plus a difference of either sign. The difference is at most 6 times
//   the root of the sum of the squared products (Hoeffding's inequality, which R. Serfling, Ann.
//   Statist. 2, 1974, has for drawing without replacement). Each step errs in proportion to its
//   partial sum, and the errors of k steps add up as in DrawnCase. The norms over the row are those
//   of D and sqrt(sum_p a_ip^2 ||b_p||_2^2).
//
// Sums of integers (Compute::kS32) are exact here, in f64 or in pairs of f64, and those of the
// product wrap. So a residual counts as its distance from the nearest multiple of 2^32, or of alpha
// 2^32 with an alpha. For an s32 D it must be 0.
//
// The roundings of the epilogue are relative to |alpha A B|, |beta C|, |bias| and |D|, and have
// their norms. The check's own roundings are added.
#pragma once

#include <cfloat>
#include <cmath>

#include "gemm/check.h"
#include "kernels/check/line_sums.h"
#include "kernels/numeric/host_device.h"

namespace gemm {

GEMM_HOST_DEVICE inline bool Finite(double x) { return x - x == 0; }

// The numbers that the bounds of all rows of a problem share. A kernel argument.
struct RowRule {
  double alpha = 1;
  double beta = 0;
  double lambda = 0;  // 8, or sqrt(n) where that is less
  double root_n = 0;
  double k = 0;
  double worst_case = 0;  // WorstCase and DrawnCase of error_bound.h
  double drawn_case = 0;
  double deviations = 0;  // that DrawnCase gives a partial sum
  double scale_unit = 0;  // roundings of the epilogue and of D
  double d_unit = 0;
  double sum_underflow = 0;  // the largest errors below the normal numbers
  double operand_underflow = 0;
  double scale_underflow = 0;
  double d_underflow = 0;
  double largest = 0;  // that an accumulator may have, and an element of D
  double largest_d = 0;
  double own = 0;       // what the check's sums lose, relative to their terms
  double sign_sum = 0;  // sum of r
  double modulus = 0;   // what accumulators that wrap may be off by; 0: they do not
  BiasAxis bias = BiasAxis::kNone;
  bool pairs = false;  // the sums are pairs of f64
};

// The sums that one row is judged by.
struct RowTerms {
  LineSums a;               // op(A), with B r as weights and the norms of B's rows
  LineSums d;               // D with r
  LineSums c;               // C with r; zeros where beta is 0
  LineSums bias;            // with r, of the vector along the row; zeros where there is none
  double bias_element = 0;  // of this row, where the bias has one for each row
  double b_norms = 0;       // sum of the norms of B's rows
};

// x less the nearest multiple of the modulus.
GEMM_HOST_DEVICE inline double Reduced(double x, double modulus) {
  return modulus == 0 ? x : x - modulus * rint(x / modulus);
}

// alpha A B r + beta C r + bias r - D r.
GEMM_HOST_DEVICE inline double Residual(const RowRule& rule, const RowTerms& t) {
  if (!rule.pairs) {
    return Reduced(rule.alpha * t.a.dot + rule.beta * t.c.dot + t.bias.dot +
                       t.bias_element * rule.sign_sum - t.d.dot,
                   rule.modulus);
  }
  PairSum sum;
  sum.Add(rule.alpha, t.a.dot, t.a.low);
  sum.Add(rule.beta, t.c.dot, t.c.low);
  sum.Join(t.bias.dot, t.bias.low);
  sum.Add(t.bias_element, rule.sign_sum, 0);
  sum.Join(-t.d.dot, -t.d.low);
  if (rule.modulus == 0) return sum.high + sum.rest;
  // Either may be so large that f64 no longer has all integers.
  return Reduced(Reduced(sum.high, rule.modulus) + Reduced(sum.rest, rule.modulus), rule.modulus);
}

// The norms over a row of the terms of D.
struct RowNorms {
  double product;  // of |A||B|, at most
  double c;        // of beta C
  double bias;
  double d;
};

GEMM_HOST_DEVICE inline RowNorms NormsOf(const RowRule& rule, const RowTerms& t) {
  return {.product = t.a.weighted,
          .c = fabs(rule.beta) * Norm(t.c),
          .bias = Norm(t.bias) + rule.root_n * fabs(t.bias_element),
          .d = Norm(t.d)};
}

// The bound of a row, from the norms of its product and of the accumulation's errors.
GEMM_HOST_DEVICE inline double BoundOf(const RowRule& rule, const RowNorms& norms, double product,
                                       double lost) {
  const double alpha = fabs(rule.alpha);
  const double added = alpha * (product + lost) + norms.c + norms.bias;
  // Four roundings in the type of the epilogue: two factors, two additions.
  const double epilogue =
      4.05 * rule.scale_unit * added +
      rule.scale_underflow * (product + lost + norms.c + norms.bias + 5 * rule.root_n);
  const double stored = 1.01 * rule.d_unit * norms.d + rule.d_underflow * rule.root_n;
  const double own =
      rule.own * rule.root_n * (alpha * norms.product + norms.c + norms.bias + norms.d);
  return rule.lambda * (alpha * lost + epilogue + stored) + own;
}

GEMM_HOST_DEVICE inline RowResidual JudgeRow(const RowRule& rule, const RowTerms& t) {
  const RowNorms norms = NormsOf(rule, t);
  const double alpha = fabs(rule.alpha);
  const double reach = alpha * norms.product + norms.c + norms.bias;
  RowResidual row;
  if (!Finite(t.a.dot) || !Finite(t.a.magnitudes) || !Finite(reach) || !Finite(t.c.dot) ||
      !Finite(t.bias.dot)) {
    row.covered = false;
    return row;
  }
  if (!Finite(t.d.dot) || !Finite(t.d.magnitudes)) {
    const double margin = 1.01 * (1 + rule.worst_case);
    // The last: a row of finite elements of f64, whose sums are not.
    const bool may = margin * norms.product > rule.largest || margin * reach > rule.largest ||
                     margin * reach > rule.largest_d || margin * rule.root_n * reach > DBL_MAX;
    row.covered = !may;
    row.residual = HUGE_VAL;  // beyond the likely bound; beyond the possible one unless `may`
    row.possible = may ? HUGE_VAL : 0;
    return row;
  }
  const double underflow = rule.sum_underflow * rule.root_n * rule.k +
                           rule.operand_underflow * (rule.root_n * t.a.magnitudes + t.b_norms);
  const double worst = rule.worst_case * norms.product + underflow;
  const double from_d = (norms.d + norms.c + norms.bias) / alpha;
  const double product = from_d < norms.product ? from_d : norms.product;
  const double spread = RootOfSquares(t.a.squares, t.a.weighted);
  const double drawn = rule.drawn_case * (product / rule.deviations + spread) + underflow;
  row.residual = fabs(Residual(rule, t));
  row.possible = BoundOf(rule, norms, norms.product, worst);
  row.likely = drawn < worst ? BoundOf(rule, norms, product, drawn) : row.possible;
  if (row.likely > row.possible) row.likely = row.possible;
  // A residual never exceeds half of its modulus, however wrong the row is.
  if (rule.modulus != 0 && row.likely >= rule.modulus / 2) row.covered = false;
  return row;
}

// residual / bound; infinite beyond a bound of 0, and 0 within an infinite one.
GEMM_HOST_DEVICE inline double Multiple(double residual, double bound) {
  if (residual == 0 || bound == HUGE_VAL) return 0;
  return bound > 0 ? residual / bound : HUGE_VAL;
}

// Adds a row to the outcome.
GEMM_HOST_DEVICE inline void TakeRow(const RowResidual& row, int64_t index, CheckOutcome& outcome) {
  if (!row.covered) ++outcome.uncovered_rows;
  const double likely = Multiple(row.residual, row.likely);
  const double possible = Multiple(row.residual, row.possible);
  if (possible > outcome.of_possible) outcome.of_possible = possible;
  if (likely > outcome.of_likely || (outcome.worst_row < 0 && row.covered)) {
    outcome.worst_row = index;
    outcome.of_likely = likely;
  }
}

}  // namespace gemm
