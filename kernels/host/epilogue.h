// What follows the sum over k on the host: act(alpha * sum + beta * C + bias),
// rounded to D's type. The one place that writes D there.
#pragma once

#include <cstdint>

#include "gemm/problem.h"
#include "kernels/numeric/activation.h"
#include "kernels/numeric/element.h"

namespace gemm {

// Finishes `count` elements of row `row` of D, starting at column `col`, from
// their sums over k. `Sum`, float or double, is also what it computes in. C is
// read only where beta is not 0, and may be D.
template <DType kD, class Sum>
void FinishRow(const Problem& problem, const Operands& operands, const Sum* sums, int64_t row,
               int64_t col, int64_t count) {
  using D = ElementTraits<kD>;
  using Storage = typename D::Storage;
  const Sum alpha = static_cast<Sum>(problem.alpha);
  const Sum beta = static_cast<Sum>(problem.beta);
  const Sum slope = static_cast<Sum>(problem.leaky_slope);
  const Storage* c =
      beta == 0 ? nullptr : static_cast<const Storage*>(operands.c) + row * operands.ldc + col;
  const Storage* bias = static_cast<const Storage*>(operands.bias);
  Storage* d = static_cast<Storage*>(operands.d) + row * operands.ldd + col;
  for (int64_t j = 0; j < count; ++j) {
    Sum value = alpha * sums[j];
    if (c != nullptr) value += beta * static_cast<Sum>(D::Load(c[j]));
    if (problem.bias == BiasAxis::kColumns) value += static_cast<Sum>(D::Load(bias[col + j]));
    if (problem.bias == BiasAxis::kRows) value += static_cast<Sum>(D::Load(bias[row]));
    d[j] = D::Store(Activate(problem.activation, slope, value));
  }
}

}  // namespace gemm
