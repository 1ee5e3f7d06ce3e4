// Products of fp8 by cuBLASLt, which takes both operands along k only, and k and
// n in multiples of 16. k is padded further, so that it may be split: see lt_plan.h.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "gemm/kernel.h"

namespace gemm {

// An operand that lies otherwise is transposed and one of another size copied
// with zeros behind; a product with more columns than D goes through f32.
absl::Status LaunchLtFp8(const Launch& launch);
size_t LtFp8WorkspaceBytes(const Problem& problem);

}  // namespace gemm
