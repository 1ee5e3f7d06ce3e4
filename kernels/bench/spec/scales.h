// The block scales that operands are measured with.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemm/problem.h"

namespace gemm::bench {

// Both or neither.
struct Scales {
  ScaleBlocks a = ScaleBlocks::kNone;
  ScaleBlocks b = ScaleBlocks::kNone;
};

// "lines:tiles": those of A are of 1 x 128 blocks, those of B of 128 x 128.
absl::StatusOr<Scales> ParseScales(absl::string_view text);

}  // namespace gemm::bench
