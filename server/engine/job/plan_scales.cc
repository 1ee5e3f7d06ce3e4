#include "server/engine/job/plan_scales.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gemmd {
namespace {

using gemm::ScaleBlockCount;
using gemm::ScaleBlocks;

// What scales of one kind have to be for op(A) of m x k, or op(B) of k x n.
struct Form {
  ScaleBlocks blocks;
  int64_t rows, cols;
  absl::string_view block;
};

std::string ToString(const Form& form) {
  return absl::StrCat(form.rows, "x", form.cols, " f32, one for each ", form.block, " block");
}

absl::StatusOr<ScaleKind> KindOf(Role role, const ScaledOperands& operands) {
  const bool of_a = role == Role::kScalesA;
  const Shape& scales = of_a ? *operands.scales_a : *operands.scales_b;
  const int64_t m = operands.m, n = operands.n, k = operands.k;
  const Form forms[] = {
      of_a ? Form{ScaleBlocks::kLines, m, ScaleBlockCount(k), "1x128"}
           : Form{ScaleBlocks::kLines, ScaleBlockCount(k), n, "128x1"},
      of_a ? Form{ScaleBlocks::kTiles, ScaleBlockCount(m), ScaleBlockCount(k), "128x128"}
           : Form{ScaleBlocks::kTiles, ScaleBlockCount(k), ScaleBlockCount(n), "128x128"},
  };
  for (const Form& form : forms) {
    if (scales.type != gemm::DType::kF32) break;
    if (scales.rows != form.rows || scales.cols != form.cols) continue;
    return ScaleKind{form.blocks, scales.column_major == of_a};
  }
  return absl::InvalidArgumentError(absl::StrCat(Name(role), " is ", gemmd::ToString(scales),
                                                 ", but must be ", ToString(forms[0]), " of op(",
                                                 of_a ? "a" : "b", "), which is ", of_a ? m : k,
                                                 "x", of_a ? k : n, ", or ", ToString(forms[1])));
}

absl::Status CheckAlone(const JobSpec& spec) {
  const absl::string_view with = spec.batch > 1                  ? "batch_count is above 1"
                                 : !spec.group.empty()           ? "there is a group"
                                 : spec.product_rows.has_value() ? "row_block is set"
                                                                 : "";
  if (with.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("scales_a and scales_b are given, and ", with,
                   ": block scales belong to single products; leave one of them out"));
}

absl::Status CheckOperands(const ScaledOperands& operands) {
  if (operands.scales_a.has_value() != operands.scales_b.has_value()) {
    const Role given = operands.scales_a.has_value() ? Role::kScalesA : Role::kScalesB;
    const Role missing = operands.scales_a.has_value() ? Role::kScalesB : Role::kScalesA;
    return absl::InvalidArgumentError(
        absl::StrCat(Name(given), " is given without ", Name(missing),
                     ": send both, with ones for the operand that is not scaled"));
  }
  for (const auto& [name, type] :
       {std::pair(Name(Role::kA), operands.a.type), std::pair(Name(Role::kB), operands.b.type)}) {
    if (gemm::IsFp8(type)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        name, " is ", gemm::Name(type), ", but operands with block scales must be e4m3 or e5m2"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ScaleKinds> KindsOfScales(const JobSpec& spec, const ScaledOperands& operands) {
  if (!operands.scales_a.has_value() && !operands.scales_b.has_value()) return ScaleKinds();
  absl::Status status = CheckOperands(operands);
  if (status.ok()) status = CheckAlone(spec);
  if (!status.ok()) return status;
  const absl::StatusOr<ScaleKind> a = KindOf(Role::kScalesA, operands);
  if (!a.ok()) return a.status();
  const absl::StatusOr<ScaleKind> b = KindOf(Role::kScalesB, operands);
  if (!b.ok()) return b.status();
  return ScaleKinds{*a, *b};
}

}  // namespace gemmd
