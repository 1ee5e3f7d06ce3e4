#include "gemm/scalars.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gemm {
namespace {

// A zero is never -0, whose bits cuBLAS does not take for a zero: it would read C.
double Round(double value, DType type) {
  return (type == DType::kF64 ? value : static_cast<double>(static_cast<float>(value))) + 0.0;
}

absl::string_view ActivationName(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return "none";
    case Activation::kRelu:
      return "relu";
    case Activation::kGelu:
      return "gelu";
    case Activation::kLeakyRelu:
      break;
  }
  return "leaky_relu";
}

}  // namespace

absl::Status CheckScalar(absl::string_view field, double value, Compute compute) {
  if (!std::isfinite(value)) {
    return absl::InvalidArgumentError(absl::StrCat(field, " is ", value, ", but must be finite"));
  }
  const DType type = ScalarType(compute);
  // Half a unit in the last place above the largest f32: from there on values round
  // to infinity.
  constexpr double kBeyondF32 = 0x1.ffffffp127;
  if (type == DType::kF64 || std::abs(value) < kBeyondF32) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", but must be from -", std::numeric_limits<float>::max(),
                   " to ", std::numeric_limits<float>::max(), ": a product with compute ",
                   Name(compute), " takes its scalars in ", Name(type)));
}

absl::Status CheckScalars(const Problem& problem) {
  for (const auto& [field, value] : {std::pair<absl::string_view, double>{"alpha", problem.alpha},
                                     {"beta", problem.beta},
                                     {"leaky_slope", problem.leaky_slope}}) {
    const absl::Status status = CheckScalar(field, value, problem.types.compute);
    if (!status.ok()) return status;
  }
  return CheckIntegerEpilogue(problem);
}

absl::Status CheckIntegerEpilogue(const Problem& problem, absl::string_view alpha) {
  if (problem.types.d != DType::kS32) return absl::OkStatus();
  constexpr absl::string_view kWhy = ": an s32 result is a sum of integers; take f32, f16 or bf16";
  const Problem rounded = RoundScalars(problem);
  for (const auto& [field, value] :
       {std::pair<absl::string_view, double>{alpha, rounded.alpha}, {"beta", rounded.beta}}) {
    if (value == 0 || value == 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is ", value, ", but must be 0 or 1", kWhy));
  }
  if (rounded.activation == Activation::kNone || rounded.activation == Activation::kRelu) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "activation is ", ActivationName(rounded.activation), ", but must be none or relu", kWhy));
}

Problem RoundScalars(const Problem& problem) {
  const DType type = ScalarType(problem.types.compute);
  Problem rounded = problem;
  for (double* scalar : {&rounded.alpha, &rounded.beta, &rounded.leaky_slope}) {
    *scalar = Round(*scalar, type);
  }
  if (rounded.activation == Activation::kLeakyRelu && rounded.leaky_slope == 0) {
    rounded.activation = Activation::kRelu;
  }
  // No activation reads it there, and it may be no number of that type.
  if (problem.types.d == DType::kS32) rounded.leaky_slope = 0;
  return rounded;
}

}  // namespace gemm
