// Runs a product, with everything that kernels have in common.
#pragma once

#include "absl/status/status.h"
#include "gemm/kernel.h"

namespace gemm {

// Runs `kernel` as Kernel::launch does, and keeps the promises of gemm/scalars.h: it
// checks and rounds the scalars, and computes D without the kernel if alpha is 0. The kernel gets
// an alpha that is not 0, scalars that its arithmetic represents exactly, and no C if beta is 0. A
// batch is INVALID_ARGUMENT if the kernel takes none. A host kernel gets its products one after
// another. So does a kernel that gets a group and cannot take one (Kernel::groups). In a group,
// products without rows are skipped, and those with a k of 0 are computed without the kernel.
//
// With a Launch::piece, a batch or a group of more than kLaunchesInPiece launches is enqueued in
// several calls. While piece->more() is true, call again with the same launch. The bits are the
// same.
absl::Status RunProduct(const Kernel& kernel, const Launch& launch);

}  // namespace gemm
