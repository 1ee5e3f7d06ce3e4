// The block scales of a job: which blocks they belong to. A pure function.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "gemm/problem.h"
#include "server/engine/job/job.h"
#include "server/engine/store/matrix.h"

namespace gemmd {

// Of one operand, as the caller sees it.
struct ScaleKind {
  gemm::ScaleBlocks blocks = gemm::ScaleBlocks::kNone;
  bool by_block = false;  // a row of their memory has those of one block of k
};

struct ScaleKinds {
  ScaleKind a, b;
};

// The stored shapes of what has scales, and of those; and each product's size.
struct ScaledOperands {
  const Shape& a;
  const Shape& b;
  const std::optional<Shape>& scales_a;
  const std::optional<Shape>& scales_b;
  int64_t m = 0, n = 0, k = 0;
};

// No kinds where there are no scales. INVALID_ARGUMENT names the operand and what it must be: A and
// B are fp8, both have scales, and these are f32 in one of the two shapes that fit; no batch, no
// group and no block of rows.
absl::StatusOr<ScaleKinds> KindsOfScales(const JobSpec& spec, const ScaledOperands& operands);

}  // namespace gemmd
