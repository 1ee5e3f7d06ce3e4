// The epilogue on the host: act(alpha * accumulator + beta * C + bias), rounded to
// D's type. Nothing else writes D there.
#pragma once

#include <cstdint>

#include "gemm/problem.h"
#include "kernels/numeric/activation.h"
#include "kernels/numeric/element.h"

namespace gemm {

// Computes `count` elements of row `row` of D, from column `col` on, from their
// accumulators. It computes in the accumulators' type, float or double. C is read only
// where beta is not 0, and may be D.
template <DType kD, class Accumulator>
void FinishRow(const Problem& problem, const Operands& operands, const Accumulator* accumulators,
               int64_t row, int64_t col, int64_t count) {
  using D = ElementTraits<kD>;
  using Storage = typename D::Storage;
  const Accumulator alpha = static_cast<Accumulator>(problem.alpha);
  const Accumulator beta = static_cast<Accumulator>(problem.beta);
  const Accumulator slope = static_cast<Accumulator>(problem.leaky_slope);
  const Storage* c =
      beta == 0 ? nullptr : static_cast<const Storage*>(operands.c) + row * operands.ldc + col;
  const Storage* bias = static_cast<const Storage*>(operands.bias);
  Storage* d = static_cast<Storage*>(operands.d) + row * operands.ldd + col;
  for (int64_t j = 0; j < count; ++j) {
    Accumulator value = alpha * accumulators[j];
    if (c != nullptr) value += beta * static_cast<Accumulator>(D::Load(c[j]));
    if (problem.bias == BiasAxis::kColumns) {
      value += static_cast<Accumulator>(D::Load(bias[col + j]));
    }
    if (problem.bias == BiasAxis::kRows) value += static_cast<Accumulator>(D::Load(bias[row]));
    d[j] = D::Store(Activate(problem.activation, slope, value));
  }
}

}  // namespace gemm
