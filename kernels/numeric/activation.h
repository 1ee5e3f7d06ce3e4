// The activation functions, for the host and the GPU alike.
#pragma once

#include <cmath>

#include "gemm/problem.h"
#include "kernels/numeric/host_device.h"
#include "kernels/numeric/wrapping.h"

namespace gemm {

// x/2 * (1 + erf(x / sqrt 2)), through erfc so that nothing cancels for
// negative x. Below -40 it is less than any f64; cut there, so that -inf gives 0
// and not NaN.
GEMM_HOST_DEVICE inline float Gelu(float x) {
  constexpr float kInverseSqrt2 = 0.70710678118654752f;
  return x < -40.0f ? -0.0f : 0.5f * x * erfcf(-x * kInverseSqrt2);
}
GEMM_HOST_DEVICE inline double Gelu(double x) {
  constexpr double kInverseSqrt2 = 0.70710678118654752440;
  return x < -40.0 ? -0.0 : 0.5 * x * erfc(-x * kInverseSqrt2);
}

// act(x); NaN stays NaN. `Scalar` is float or double.
template <class Scalar>
GEMM_HOST_DEVICE inline Scalar Activate(Activation activation, Scalar leaky_slope, Scalar x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x < Scalar(0) ? Scalar(0) : x;
    case Activation::kGelu:
      return Gelu(x);
    case Activation::kLeakyRelu:
      return x > Scalar(0) ? x : leaky_slope * x;
  }
  return x;
}

// Integers have only the relu.
GEMM_HOST_DEVICE inline WrappingS32 Activate(Activation activation, WrappingS32 /*leaky_slope*/,
                                             WrappingS32 x) {
  const WrappingS32 zero;
  return activation == Activation::kRelu && x < zero ? zero : x;
}

}  // namespace gemm
