// The block scales of a job: which blocks they belong to.
#include <string>

#include "absl/strings/str_cat.h"
#include "server/engine/job/plan.h"

namespace gemmd {
namespace {

using gemm::ScaleBlockCount;
using gemm::ScaleBlocks;

// The shape that scales of one kind must have for op(A) of m x k, or op(B) of k x n.
struct ScaleShape {
  ScaleBlocks blocks;
  int64_t rows, cols;
  absl::string_view block;
};

std::string ToString(const ScaleShape& one) {
  return absl::StrCat(one.rows, "x", one.cols, " f32, one for each ", one.block, " block");
}

// The size of each product is in the plan.
absl::StatusOr<ScaleKind> KindOf(Role role, const Shape& scales, const Plan& plan) {
  const bool of_a = role == Role::kScalesA;
  const int64_t m = plan.m, n = plan.n, k = plan.k;
  const ScaleShape shapes[] = {
      of_a ? ScaleShape{ScaleBlocks::kLines, m, ScaleBlockCount(k), "1x128"}
           : ScaleShape{ScaleBlocks::kLines, ScaleBlockCount(k), n, "128x1"},
      of_a ? ScaleShape{ScaleBlocks::kTiles, ScaleBlockCount(m), ScaleBlockCount(k), "128x128"}
           : ScaleShape{ScaleBlocks::kTiles, ScaleBlockCount(k), ScaleBlockCount(n), "128x128"},
  };
  for (const ScaleShape& one : shapes) {
    if (scales.type != gemm::DType::kF32) break;
    if (scales.rows != one.rows || scales.cols != one.cols) continue;
    return ScaleKind{one.blocks, scales.column_major == of_a};
  }
  return absl::InvalidArgumentError(absl::StrCat(Name(role), " is ", gemmd::ToString(scales),
                                                 ", but must be ", ToString(shapes[0]), " of op(",
                                                 of_a ? "a" : "b", "), which is ", of_a ? m : k,
                                                 "x", of_a ? k : n, ", or ", ToString(shapes[1])));
}

}  // namespace

absl::Status PlanScales(const OperandShapes& shapes, Plan& plan) {
  const bool has_a = shapes[Role::kScalesA].has_value(), has_b = shapes[Role::kScalesB].has_value();
  if (!has_a && !has_b) return absl::OkStatus();
  if (has_a != has_b) {
    return absl::InvalidArgumentError(
        absl::StrCat(Name(has_a ? Role::kScalesA : Role::kScalesB), " is given without ",
                     Name(has_a ? Role::kScalesB : Role::kScalesA),
                     ": send both, with ones for the operand that is not scaled"));
  }
  for (const Role role : {Role::kA, Role::kB}) {
    const gemm::DType type = shapes[role]->type;
    if (gemm::IsFp8(type)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(Name(role), " is ", gemm::Name(type),
                     ", but operands with block scales must be e4m3 or e5m2"));
  }
  const absl::StatusOr<ScaleKind> a = KindOf(Role::kScalesA, *shapes[Role::kScalesA], plan);
  if (!a.ok()) return a.status();
  const absl::StatusOr<ScaleKind> b = KindOf(Role::kScalesB, *shapes[Role::kScalesB], plan);
  if (!b.ok()) return b.status();
  plan.scales_a = *a;
  plan.scales_b = *b;
  plan.problem.scales_a = plan.swapped ? b->blocks : a->blocks;
  plan.problem.scales_b = plan.swapped ? a->blocks : b->blocks;
  return absl::OkStatus();
}

}  // namespace gemmd
