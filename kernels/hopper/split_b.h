// Splits B into high and low TF32 numbers (f32x3.h) before a product.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "gemm/kernel.h"
#include "kernels/transpose/operands.h"

namespace gemm {

// Scratch bytes for the split B of a problem. In a batch, enough for Bs that are not shared.
size_t SplitBBytes(const Problem& problem);

// Enqueues the split of the B of `product` into the launch's workspace, behind its first `used`
// bytes, and then records `launch.transposed`. B is then stored n x k: for each B the matrix of
// high numbers, and n rows behind it that of low ones. INTERNAL where the workspace is too small.
absl::Status SplitB(const Launch& launch, size_t used, TransposedProduct& product);

}  // namespace gemm
