// What alpha, beta and the slope of a leaky relu mean, for every kernel and for
// the oracle:
//
// - They are rounded to the type of the epilogue: f64 where the product computes in
//   f64, f32 everywhere else, f16 accumulation included. The rounded value counts.
//   One that is not finite is INVALID_ARGUMENT.
// - alpha 0: the product is left out. A and B are not read, and NaN in them does
//   not matter.
// - beta 0: beta C is left out in the same way.
// - A leaky relu of slope 0 is a relu: -inf becomes 0, NaN stays NaN.
//
// RunProduct (gemm/run.h) puts these into effect before a kernel is launched.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gemm/problem.h"

namespace gemm {

// The type of the epilogue: of alpha, beta and the slope, of C and the bias when they
// are added, and of the activation.
constexpr DType ScalarType(Compute compute) {
  return compute == Compute::kF64 ? DType::kF64 : DType::kF32;
}

// OK, or INVALID_ARGUMENT with the name, the value and the bound of a scalar that
// is not finite, or has no room in its type. `field` is what the caller calls it.
absl::Status CheckScalar(absl::string_view field, double value, Compute compute);

// The same for alpha, beta and leaky_slope by these names. The slope has to be
// right whether or not the activation takes it.
absl::Status CheckScalars(const Problem& problem);

// The problem with each scalar as it counts, for a problem that CheckScalars
// accepts: rounded, and a leaky relu of slope 0 as the relu that it is.
Problem RoundScalars(const Problem& problem);

}  // namespace gemm
