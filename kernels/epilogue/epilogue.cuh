// What follows the sum over k on the GPU: act(alpha * sum + beta * C + bias),
// rounded to D's type. Every kernel of ours ends in it.
#pragma once

#include <cstdint>

#include "gemm/problem.h"
#include "kernels/numeric/activation.h"
#include "kernels/numeric/device_element.cuh"

namespace gemm {

// A kernel argument. Its branches are uniform over the grid.
template <DType kD>
struct Epilogue {
  using Element = DeviceElement<kD>;
  using Type = typename Element::Type;
  using Scalar = typename Element::Scalar;

  Type* d;
  int64_t ldd;
  const Type* c;  // may be d
  int64_t ldc;
  const Type* bias;
  Scalar alpha;
  Scalar beta;  // 0: c is not read
  Scalar leaky_slope;
  BiasAxis bias_axis;
  Activation activation;

  // The value of element (i, j) of D from its sum over k, before rounding.
  __device__ Scalar Value(Scalar sum, int64_t i, int64_t j) const {
    Scalar value = alpha * sum;
    if (beta != Scalar(0)) value += beta * Element::Load(c[i * ldc + j]);
    if (bias_axis == BiasAxis::kColumns) value += Element::Load(bias[j]);
    if (bias_axis == BiasAxis::kRows) value += Element::Load(bias[i]);
    return Activate(activation, leaky_slope, value);
  }

  // Writes element (i, j) of D.
  __device__ void Store(Scalar sum, int64_t i, int64_t j) const {
    d[i * ldd + j] = Element::Store(Value(sum, i, j));
  }
};

template <DType kD>
Epilogue<kD> MakeEpilogue(const Problem& problem, const Operands& operands) {
  using Type = typename Epilogue<kD>::Type;
  using Scalar = typename Epilogue<kD>::Scalar;
  return {
      .d = static_cast<Type*>(operands.d),
      .ldd = operands.ldd,
      .c = static_cast<const Type*>(operands.c),
      .ldc = operands.ldc,
      .bias = static_cast<const Type*>(operands.bias),
      .alpha = static_cast<Scalar>(problem.alpha),
      .beta = static_cast<Scalar>(problem.beta),
      .leaky_slope = static_cast<Scalar>(problem.leaky_slope),
      .bias_axis = problem.bias,
      .activation = problem.activation,
  };
}

}  // namespace gemm
