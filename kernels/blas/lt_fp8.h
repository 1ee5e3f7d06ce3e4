// fp8 products by cuBLASLt. It takes both operands along k only, and k and n in multiples
// of 16. k is padded further, so that it may be split: see lt_plan.h.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "gemm/kernel.h"

namespace gemm {

// Transposes operands of another layout, and copies operands of another size with zeros
// behind them. A product with more columns than D goes through f32 scratch.
absl::Status LaunchLtFp8(const Launch& launch);
size_t LtFp8WorkspaceBytes(const Problem& problem);

}  // namespace gemm
