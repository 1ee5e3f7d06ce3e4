// The meaning of alpha, beta and the slope of a leaky relu, for every kernel and for the
// oracle:
//
// - They are rounded to the type of the epilogue: f64 if the product computes in f64, f32
//   everywhere else, f16 accumulation included. The rounded value counts. One that is not finite is
//   INVALID_ARGUMENT.
// - alpha 0: the product is skipped. A and B are not read, and NaN in them does not matter.
// - beta 0: beta C is skipped in the same way.
// - A leaky relu of slope 0 is a relu: -inf becomes 0, NaN stays NaN.
// - With an s32 D the epilogue is of integers: alpha and beta are 0 or 1 once they are rounded, and
//   the activation is none or relu. Any other value is INVALID_ARGUMENT.
//
// RunProduct (gemm/run.h) does this before it launches a kernel.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gemm/problem.h"

namespace gemm {

// The type of the epilogue: of alpha, beta and the slope, of C and the bias when they are added,
// and of the activation. With an s32 D, integers are added as integers.
constexpr DType ScalarType(Compute compute) {
  return compute == Compute::kF64 ? DType::kF64 : DType::kF32;
}

// INVALID_ARGUMENT for a scalar that is not finite or too large for its type; the message
// has `field`, the value and the bound.
absl::Status CheckScalar(absl::string_view field, double value, Compute compute);

// The same for alpha, beta and leaky_slope, by these names. The slope is checked whether
// or not the activation uses it. Includes CheckIntegerEpilogue.
absl::Status CheckScalars(const Problem& problem);

// INVALID_ARGUMENT for an epilogue that an s32 D does not have; the message has the field, the
// value and the bound. `alpha` is the name of alpha in the message.
absl::Status CheckIntegerEpilogue(const Problem& problem, absl::string_view alpha = "alpha");

// The problem with rounded scalars, and with a relu in place of a leaky relu of slope 0.
// CheckScalars accepts `problem`.
Problem RoundScalars(const Problem& problem);

}  // namespace gemm
