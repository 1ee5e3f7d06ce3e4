// Runs a product. All that kernels have in common is done here.
#pragma once

#include "absl/status/status.h"
#include "gemm/kernel.h"

namespace gemm {

// Runs `kernel` as Kernel::launch does, and keeps the promises of gemm/scalars.h: it
// checks and rounds the scalars, and computes D without the kernel where alpha is 0. The
// kernel gets an alpha that is not 0, scalars that its arithmetic represents exactly, and
// no C where beta is 0. A batch is INVALID_ARGUMENT where the kernel takes none. A kernel of the
// host gets its products one after another, and so does one that is to take a group and cannot
// (Kernel::groups). Products of a group without rows are skipped; those without a k are computed
// without the kernel.
//
// With a Launch::piece, a batch or a group that takes more than kLaunchesInPiece launches is
// enqueued in several calls: piece->more() says that another one is to follow, with the same
// launch. The bits are the same.
absl::Status RunProduct(const Kernel& kernel, const Launch& launch);

}  // namespace gemm
