// Products of fp8 and of s8 by cuBLASLt. It takes both operands along k only, and k and n in
// multiples of 16 (of 4 for s8). k is padded further, so that it may be split: see lt_plan.h.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "gemm/kernel.h"

namespace gemm {

// Transposes operands of another layout, and copies operands of another size with zeros
// behind them. A product with more columns than D goes through scratch of the accumulators' type.
absl::Status LaunchLt8Bit(const Launch& launch);
size_t Lt8BitWorkspaceBytes(const Problem& problem);

}  // namespace gemm
