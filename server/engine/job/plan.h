// Converts a job, as its caller describes it, to the row-major problem that kernels take.
// Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gemm/problem.h"
#include "server/engine/core/form.h"
#include "server/engine/job/job.h"
#include "server/engine/store/matrix.h"

namespace gemmd {

// The shapes of a job's operands as stored, including those of resident ones. c, bias and the
// scales are absent if the job has none.
using OperandShapes = ByRole<std::optional<Shape>>;

// The block scales of one operand, as the caller sees it.
struct ScaleKind {
  gemm::ScaleBlocks blocks = gemm::ScaleBlocks::kNone;
  bool by_block = false;  // a row of their memory has those of one block of k
};

struct Plan {
  Form form = Form::kSingle;
  // types.compute is the caller's mode, or the default for the types.
  gemm::Problem problem;
  // A column-major result is computed transposed: the kernel's A is the job's B.
  bool swapped = false;
  ScaleKind scales_a, scales_b;
  Shape result;  // of all products of a batch or a group
  // As the caller sees each product. In a group, the dimension in which the products are stacked is
  // the sum of theirs.
  int64_t m = 0, n = 0, k = 0;
  SharedOperands shared{};
  // For a block of rows: m of the whole product.
  std::optional<int64_t> product_rows;
  // The memory of problem.extents, shared by copies of the plan. Null without a group.
  std::shared_ptr<const std::vector<int64_t>> extents;

  // The problem that the kernel is chosen for: of a block of rows, the whole product.
  gemm::Problem WholeProblem() const;
  int64_t products() const { return ProductCount(problem); }
  // Whether several products read this operand.
  bool Shares(Role role) const { return products() > 1 && shared[role]; }
};

// The defaults for a product whose A has this type. No kernel writes fp8 or s8.
gemm::DType DefaultOutput(gemm::DType a);
gemm::Compute DefaultCompute(gemm::DType a);

// INVALID_ARGUMENT names the operand and the two sizes that differ, or the batch or the group and
// its bound.
absl::StatusOr<Plan> MakePlan(const JobSpec& spec, const OperandShapes& shapes);

// Parts of MakePlan, in files of their own.
// The size and the result of a group, from its sizes, A, B and the result's order.
absl::Status PlanGroup(const JobSpec& spec, const OperandShapes& shapes, Plan& plan);
// The blocks of the scales, if there are any. A and B are fp8, both have scales, and these are f32
// in one of the two shapes that fit.
absl::Status PlanScales(const OperandShapes& shapes, Plan& plan);

// Device memory for the operands of a problem and its result, where all are sent: without C and
// the bias.
size_t SentBytes(const gemm::Problem& problem);

// The kernel's operands, from the memory of each role; without data, of those that the job does not
// have.
struct OperandMemory {
  const void* data = nullptr;
  int64_t leading_dimension = 0;
};
using OperandMemories = ByRole<OperandMemory>;
gemm::Operands BindOperands(const Plan& plan, const OperandMemories& inputs,
                            const OperandMemory& d);

}  // namespace gemmd
