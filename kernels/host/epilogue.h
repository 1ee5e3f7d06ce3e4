// The epilogue on the host: act(alpha * accumulator + beta * C + bias), rounded to
// D's type. Nothing else writes D there.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gemm/problem.h"
#include "kernels/numeric/activation.h"
#include "kernels/numeric/element.h"
#include "kernels/numeric/wrapping.h"

namespace gemm {

// The type that the epilogue computes in: the accumulators', but float where those are integers
// and D is not.
template <DType kD, class Accumulator>
using HostScalar = std::conditional_t<std::is_same_v<Accumulator, WrappingS32> && kD != DType::kS32,
                                      float, Accumulator>;

// Computes `count` elements of row `row` of D, from column `col` on, from their
// accumulators: float, double or WrappingS32. C is read only where beta is not 0, and may be D.
template <DType kD, class Accumulator>
void FinishRow(const Problem& problem, const Operands& operands, const Accumulator* accumulators,
               int64_t row, int64_t col, int64_t count) {
  using D = ElementTraits<kD>;
  using Storage = typename D::Storage;
  using Scalar = HostScalar<kD, Accumulator>;
  const auto alpha = static_cast<Scalar>(problem.alpha);
  const auto beta = static_cast<Scalar>(problem.beta);
  const auto slope = static_cast<Scalar>(problem.leaky_slope);
  const Storage* c = beta == Scalar(0)
                         ? nullptr
                         : static_cast<const Storage*>(operands.c) + row * operands.ldc + col;
  const Storage* bias = static_cast<const Storage*>(operands.bias);
  Storage* d = static_cast<Storage*>(operands.d) + row * operands.ldd + col;
  for (int64_t j = 0; j < count; ++j) {
    Scalar value = alpha * static_cast<Scalar>(accumulators[j]);
    if (c != nullptr) value += beta * static_cast<Scalar>(D::Load(c[j]));
    if (problem.bias == BiasAxis::kColumns) value += static_cast<Scalar>(D::Load(bias[col + j]));
    if (problem.bias == BiasAxis::kRows) value += static_cast<Scalar>(D::Load(bias[row]));
    d[j] = D::Store(static_cast<double>(Activate(problem.activation, slope, value)));
  }
}

}  // namespace gemm
