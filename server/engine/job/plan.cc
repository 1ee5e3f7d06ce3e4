#include "server/engine/job/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gemm/scalars.h"

namespace gemmd {
namespace {

absl::Status Mismatch(absl::string_view field, const Shape& shape, absl::string_view must) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", ToString(shape), ", but must be ", must));
}

absl::StatusOr<Form> FormOf(const JobSpec& spec, const OperandShapes& shapes) {
  const auto given = [&spec](Form form) {
    return Given(form, form == Form::kBatch ? spec.batch : static_cast<int64_t>(spec.group.size()));
  };
  const bool scales = shapes[Role::kScalesA].has_value() && shapes[Role::kScalesB].has_value();
  Form form = Form::kSingle;
  for (const auto& [one, is_asked] : {std::pair(Form::kBatch, spec.batch > 1),
                                      {Form::kGroup, !spec.group.empty()},
                                      {Form::kRowBlock, spec.product_rows.has_value()},
                                      {Form::kBlockScales, scales}}) {
    if (!is_asked) continue;
    if (form != Form::kSingle) {
      return absl::InvalidArgumentError(
          absl::StrCat(given(form), " and ", given(one),
                       ", but they exclude each other: leave one of them out"));
    }
    form = one;
  }
  return form;
}

absl::Status CheckBatch(const JobSpec& spec, const OperandShapes& shapes) {
  if (spec.batch < 1 || spec.batch > gemm::kMaxBatch) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch_count is ", spec.batch, ", but must be from 1 to ", gemm::kMaxBatch));
  }
  for (const Role role : kRoles) {
    if (!spec.shared[role] || shapes[role].has_value()) continue;
    return absl::InvalidArgumentError(absl::StrCat("shared_operands names ", Name(role),
                                                   ", but the product has no ", Name(role)));
  }
  return absl::OkStatus();
}

// With both factors shared a job's memory would not bound its work.
absl::Status CheckFactors(const Plan& plan) {
  if (plan.form != Form::kBatch || !plan.Shares(Role::kA) || !plan.Shares(Role::kB)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("shared_operands names a and b, but with batch_count ", plan.problem.batch,
                   " at most one of them may be shared"));
}

// The whole product is only chosen for, but its sizes must be such as a product may have.
absl::Status CheckRowBlock(const JobSpec& spec, const Plan& plan) {
  if (plan.form != Form::kRowBlock) return absl::OkStatus();
  if (spec.output_column_major) {
    return absl::InvalidArgumentError(
        "row_block is set, but output_layout is column-major: row blocks are of row-major results");
  }
  const int64_t rows = *spec.product_rows;
  if (rows < plan.m) {
    return absl::InvalidArgumentError(absl::StrCat("row_block.product_rows is ", rows,
                                                   ", but must be at least ", plan.m,
                                                   ", the rows of the block"));
  }
  return CheckShape({rows, std::max(plan.n, plan.k), plan.result.type},
                    "row_block: a matrix of the whole product");
}

int64_t& LinesOf(Shape& shape) { return shape.column_major ? shape.cols : shape.rows; }

// The operand of one product: its part of the matrix, or all of it where the products share it.
absl::StatusOr<Shape> OfOneProduct(const JobSpec& spec, const OperandShapes& shapes, Role role) {
  Shape shape = *shapes[role];
  if (spec.shared[role]) return shape;
  if (shape.lines() % spec.batch != 0) {
    const absl::string_view lines = shape.column_major ? "columns" : "rows";
    return Mismatch(
        Name(role), shape,
        absl::StrCat("one matrix for each product: with batch_count ", spec.batch, " its ",
                     shape.lines(), " ", lines, " must be a multiple of that, unless ",
                     "shared_operands names it"));
  }
  LinesOf(shape) /= spec.batch;
  return shape;
}

// The matrix of all products of the batch, if each has one like this.
absl::StatusOr<Shape> OfAllProducts(const JobSpec& spec, Shape shape, absl::string_view field) {
  if (shape.lines() > std::numeric_limits<int64_t>::max() / spec.batch) {
    return absl::InvalidArgumentError(absl::StrCat(field, " is ", spec.batch, " matrices of ",
                                                   ToString(shape),
                                                   ", but must be smaller than 2^60 bytes"));
  }
  LinesOf(shape) *= spec.batch;
  if (absl::Status status = CheckShape(shape, field); !status.ok()) return status;
  return shape;
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
  const Shape one{plan.m, plan.n, plan.result.type, plan.result.column_major};
  const bool shares = plan.Shares(Role::kC);
  if (const Shape& must = shares ? one : plan.result; !(*c == must)) {
    return Mismatch("c", *c,
                    absl::StrCat(shares ? "as the result of each product: " : "as the result: ",
                                 ToString(must)));
  }
  return absl::OkStatus();
}

// If the products of a group are stacked in n, so is the bias, in one row.
bool BiasIsStacked(const Plan& plan) {
  return plan.problem.grouped == gemm::GroupedBy::kM && plan.swapped;
}

absl::Status CheckBias(const Plan& plan, const std::optional<Shape>& bias) {
  if (!bias.has_value()) return absl::OkStatus();
  const bool one_row = plan.Shares(Role::kBias) || BiasIsStacked(plan);
  const int64_t rows = one_row ? 1 : plan.products();
  if (bias->rows != rows || bias->cols != plan.n || bias->type != plan.result.type) {
    return Mismatch("bias", *bias,
                    absl::StrCat(rows, "x", plan.n, " ", gemm::Name(plan.result.type),
                                 ", one element a column of the result",
                                 rows > 1 ? " and a row for each product" : ""));
  }
  // A single row is contiguous in either order.
  if (rows > 1 ? bias->column_major : bias->lines() != 1) {
    return Mismatch("bias", *bias, "row-major, so that its elements are contiguous");
  }
  return absl::OkStatus();
}

constexpr absl::string_view kScaledAlpha = "alpha * scale_a * scale_b";
bool HasScale(const JobSpec& spec) { return spec.scale_a != 1 || spec.scale_b != 1; }

// The scales are part of alpha from here on.
absl::Status SetScalars(const JobSpec& spec, gemm::Problem& p) {
  p.alpha = spec.alpha * spec.scale_a * spec.scale_b;
  p.beta = spec.beta;
  p.leaky_slope = spec.leaky_slope;
  if (std::isfinite(spec.alpha) && HasScale(spec)) {
    const absl::Status status = gemm::CheckScalar(kScaledAlpha, p.alpha, p.types.compute);
    if (!status.ok()) return status;
  }
  return gemm::CheckScalars(p);
}

// The matrices of a batch lie one after the other; in a group, those that are of one size.
void SetStrides(const Plan& plan, gemm::Operands& o) {
  using gemm::GroupedBy;
  const gemm::Problem& p = plan.problem;
  if (plan.form != Form::kBatch && plan.form != Form::kGroup) return;
  const auto stride = [&plan](Role role, int64_t elements) {
    return plan.Shares(role) ? 0 : elements;
  };
  if (p.grouped == GroupedBy::kNothing) {
    o.stride_a = stride(plan.swapped ? Role::kB : Role::kA, (p.trans_a ? p.k : p.m) * o.lda);
  }
  if (p.grouped != GroupedBy::kK) {
    o.stride_b = stride(plan.swapped ? Role::kA : Role::kB, (p.trans_b ? p.n : p.k) * o.ldb);
  }
  if (p.grouped != GroupedBy::kM) {
    o.stride_d = p.m * o.ldd;
    if (o.c != nullptr) o.stride_c = stride(Role::kC, p.m * o.ldc);
  }
  if (o.bias != nullptr && !BiasIsStacked(plan)) {
    o.stride_bias = stride(Role::kBias, gemm::PitchBytes(plan.n, p.types.d) /
                                            static_cast<int64_t>(gemm::SizeOf(p.types.d)));
  }
}

// Sets m, n, k and the result, which A and B say.
absl::Status SizeBatch(const JobSpec& spec, const OperandShapes& shapes, Plan& plan) {
  plan.problem.batch = spec.batch;
  const absl::StatusOr<Shape> one_a = OfOneProduct(spec, shapes, Role::kA);
  if (!one_a.ok()) return one_a.status();
  const absl::StatusOr<Shape> one_b = OfOneProduct(spec, shapes, Role::kB);
  if (!one_b.ok()) return one_b.status();
  const Shape &a = *one_a, &b = *one_b;
  plan.m = spec.transpose_a ? a.cols : a.rows;
  plan.k = spec.transpose_a ? a.rows : a.cols;
  plan.n = spec.transpose_b ? b.rows : b.cols;
  const int64_t b_k = spec.transpose_b ? b.cols : b.rows;
  if (plan.k != b_k) {
    return absl::InvalidArgumentError(absl::StrCat("the inner dimensions differ: op(a) is ", plan.m,
                                                   "x", plan.k, ", op(b) is ", b_k, "x", plan.n,
                                                   "; op(a)'s columns must be op(b)'s rows"));
  }
  absl::StatusOr<Shape> result = OfAllProducts(
      spec,
      {plan.m, plan.n, spec.output_type.value_or(DefaultOutput(a.type)), spec.output_column_major},
      "the result");
  if (!result.ok()) return result.status();
  plan.result = *result;
  return absl::OkStatus();
}

gemm::ScaleView ViewOfScales(const ScaleKind& kind, const OperandMemory& memory) {
  if (memory.data == nullptr) return {};
  const int64_t row = memory.leading_dimension;
  return {.data = static_cast<const float*>(memory.data),
          .line_step = kind.by_block ? 1 : row,
          .block_step = kind.by_block ? row : 1};
}

// The product as kernels see it.
void Orient(const JobSpec& spec, const OperandShapes& shapes, Plan& plan) {
  const Shape &a = *shapes[Role::kA], &b = *shapes[Role::kB];
  gemm::Problem& p = plan.problem;
  // Stored column-major means the rows in memory are the transpose.
  const bool a_transposed = spec.transpose_a != a.column_major;
  const bool b_transposed = spec.transpose_b != b.column_major;
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
}

}  // namespace

gemm::DType DefaultOutput(gemm::DType a) {
  if (a == gemm::DType::kS8) return gemm::DType::kS32;
  return gemm::IsFp8(a) ? gemm::DType::kF16 : a;
}

gemm::Compute DefaultCompute(gemm::DType a) {
  if (a == gemm::DType::kS8) return gemm::Compute::kS32;
  return a == gemm::DType::kF64 ? gemm::Compute::kF64 : gemm::Compute::kF32;
}

absl::StatusOr<Plan> MakePlan(const JobSpec& spec, const OperandShapes& shapes) {
  absl::Status status = CheckBatch(spec, shapes);
  if (!status.ok()) return status;
  const absl::StatusOr<Form> form = FormOf(spec, shapes);
  if (!form.ok()) return form.status();
  Plan plan;
  plan.form = *form;
  plan.shared = spec.shared;
  plan.product_rows = spec.product_rows;
  plan.swapped = spec.output_column_major;
  plan.problem.types.compute = spec.compute.value_or(DefaultCompute(shapes[Role::kA]->type));
  status = SetScalars(spec, plan.problem);
  if (status.ok()) {
    status =
        plan.form == Form::kGroup ? PlanGroup(spec, shapes, plan) : SizeBatch(spec, shapes, plan);
  }
  if (status.ok()) status = CheckC(spec, plan, shapes[Role::kC]);
  if (status.ok()) status = CheckBias(plan, shapes[Role::kBias]);
  if (status.ok()) status = CheckFactors(plan);
  if (status.ok()) status = CheckRowBlock(spec, plan);
  if (!status.ok()) return status;
  Orient(spec, shapes, plan);
  status = gemm::CheckIntegerEpilogue(plan.problem, HasScale(spec) ? kScaledAlpha : "alpha");
  if (status.ok()) status = PlanScales(shapes, plan);
  if (!status.ok()) return status;
  return plan;
}

// The result of a block of rows is row-major, so that the kernel's m is the caller's.
gemm::Problem Plan::WholeProblem() const {
  gemm::Problem whole = problem;
  if (product_rows.has_value()) whole.m = *product_rows;
  return whole;
}

size_t SentBytes(const gemm::Problem& p) {
  const auto bytes = [](int64_t rows, int64_t columns, gemm::DType type) {
    return static_cast<size_t>(rows * gemm::PitchBytes(columns, type));
  };
  return (p.trans_a ? bytes(p.k, p.m, p.types.a) : bytes(p.m, p.k, p.types.a)) +
         (p.trans_b ? bytes(p.n, p.k, p.types.b) : bytes(p.k, p.n, p.types.b)) +
         bytes(p.m, p.n, p.types.d);
}

gemm::Operands BindOperands(const Plan& plan, const OperandMemories& inputs,
                            const OperandMemory& d) {
  const OperandMemory& first = inputs[plan.swapped ? Role::kB : Role::kA];
  const OperandMemory& second = inputs[plan.swapped ? Role::kA : Role::kB];
  const OperandMemory& c = inputs[Role::kC];
  gemm::Operands operands;
  operands.a = first.data;
  operands.lda = first.leading_dimension;
  operands.b = second.data;
  operands.ldb = second.leading_dimension;
  operands.c = c.data;
  operands.ldc = c.leading_dimension;
  operands.bias = inputs[Role::kBias].data;
  operands.d = const_cast<void*>(d.data);
  operands.ldd = d.leading_dimension;
  SetStrides(plan, operands);
  operands.scales_a = ViewOfScales(plan.scales_a, inputs[Role::kScalesA]);
  operands.scales_b = ViewOfScales(plan.scales_b, inputs[Role::kScalesB]);
  if (plan.swapped) std::swap(operands.scales_a, operands.scales_b);
  return operands;
}

}  // namespace gemmd
