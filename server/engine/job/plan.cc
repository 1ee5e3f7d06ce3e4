#include "server/engine/job/plan.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "gemm/scalars.h"

namespace gemmd {
namespace {

absl::Status Mismatch(absl::string_view field, const Shape& shape, absl::string_view must) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", ToString(shape), ", but must be ", must));
}

absl::Status CheckC(const JobSpec& spec, const Plan& plan, const std::optional<Shape>& c) {
  if (!c.has_value()) {
    if (spec.beta == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("beta is ", spec.beta, ", but there is no c: leave beta out or send c"));
  }
  if (spec.beta == 0) {
    return absl::InvalidArgumentError("c is given, but beta is 0: set beta, or leave c out");
  }
  if (!(*c == plan.result)) {
    return Mismatch("c", *c, absl::StrCat("as the result: ", ToString(plan.result)));
  }
  return absl::OkStatus();
}

absl::Status CheckBias(const Plan& plan, const std::optional<Shape>& bias) {
  if (!bias.has_value()) return absl::OkStatus();
  if (bias->rows != 1 || bias->cols != plan.n || bias->type != plan.result.type) {
    return Mismatch("bias", *bias,
                    absl::StrCat("1x", plan.n, " ", gemm::Name(plan.result.type),
                                 ", one element a column of the result"));
  }
  if (bias->lines() != 1) {
    return Mismatch("bias", *bias, "row-major, so that its elements are contiguous");
  }
  return absl::OkStatus();
}

// The scales are part of alpha from here on.
absl::Status SetScalars(const JobSpec& spec, gemm::Problem& p) {
  p.alpha = spec.alpha * spec.scale_a * spec.scale_b;
  p.beta = spec.beta;
  p.leaky_slope = spec.leaky_slope;
  if (std::isfinite(spec.alpha) && (spec.scale_a != 1 || spec.scale_b != 1)) {
    const absl::Status status =
        gemm::CheckScalar("alpha * scale_a * scale_b", p.alpha, p.types.compute);
    if (!status.ok()) return status;
  }
  return gemm::CheckScalars(p);
}

}  // namespace

gemm::DType DefaultOutput(gemm::DType a) {
  return a == gemm::DType::kE4M3 || a == gemm::DType::kE5M2 ? gemm::DType::kF16 : a;
}

gemm::Compute DefaultCompute(gemm::DType a) {
  return a == gemm::DType::kF64 ? gemm::Compute::kF64 : gemm::Compute::kF32;
}

absl::StatusOr<Plan> MakePlan(const JobSpec& spec, const OperandShapes& shapes) {
  const Shape& a = *shapes[Role::kA];
  const Shape& b = *shapes[Role::kB];
  Plan plan;
  gemm::Problem& p = plan.problem;
  p.types.compute = spec.compute.value_or(DefaultCompute(a.type));
  absl::Status status = SetScalars(spec, p);
  if (!status.ok()) return status;
  plan.m = spec.transpose_a ? a.cols : a.rows;
  plan.k = spec.transpose_a ? a.rows : a.cols;
  plan.n = spec.transpose_b ? b.rows : b.cols;
  const int64_t b_k = spec.transpose_b ? b.cols : b.rows;
  if (plan.k != b_k) {
    return absl::InvalidArgumentError(absl::StrCat("the inner dimensions differ: op(a) is ", plan.m,
                                                   "x", plan.k, ", op(b) is ", b_k, "x", plan.n,
                                                   "; op(a)'s columns must be op(b)'s rows"));
  }
  plan.result = Shape{plan.m, plan.n, spec.output_type.value_or(DefaultOutput(a.type)),
                      spec.output_column_major};
  status = CheckShape(plan.result, "the result");
  if (status.ok()) status = CheckC(spec, plan, shapes[Role::kC]);
  if (status.ok()) status = CheckBias(plan, shapes[Role::kBias]);
  if (!status.ok()) return status;

  // Stored column-major means the rows in memory are the transpose.
  const bool a_transposed = spec.transpose_a != a.column_major;
  const bool b_transposed = spec.transpose_b != b.column_major;
  plan.swapped = spec.output_column_major;
  p.m = plan.swapped ? plan.n : plan.m;
  p.n = plan.swapped ? plan.m : plan.n;
  p.k = plan.k;
  p.trans_a = plan.swapped ? !b_transposed : a_transposed;
  p.trans_b = plan.swapped ? !a_transposed : b_transposed;
  p.types = {plan.swapped ? b.type : a.type, plan.swapped ? a.type : b.type, plan.result.type,
             p.types.compute};
  if (shapes[Role::kBias].has_value()) {
    p.bias = plan.swapped ? gemm::BiasAxis::kRows : gemm::BiasAxis::kColumns;
  }
  p.activation = spec.activation;
  return plan;
}

gemm::Operands BindOperands(const Plan& plan, const OperandMemory& a, const OperandMemory& b,
                            const OperandMemory& c, const void* bias, const OperandMemory& d) {
  const OperandMemory& first = plan.swapped ? b : a;
  const OperandMemory& second = plan.swapped ? a : b;
  gemm::Operands operands;
  operands.a = first.data;
  operands.lda = first.leading_dimension;
  operands.b = second.data;
  operands.ldb = second.leading_dimension;
  operands.c = c.data;
  operands.ldc = c.leading_dimension;
  operands.bias = bias;
  operands.d = const_cast<void*>(d.data);
  operands.ldd = d.leading_dimension;
  return operands;
}

}  // namespace gemmd
