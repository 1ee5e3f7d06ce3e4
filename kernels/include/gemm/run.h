// The one way to run a product: what all kernels have in common is done here.
#pragma once

#include "absl/status/status.h"
#include "gemm/kernel.h"

namespace gemm {

// Runs `kernel` as Kernel::launch does, after what gemm/scalars.h promises: checks
// and rounds the scalars, and makes D without the kernel where alpha is 0. The
// kernel itself finds alpha that is not 0, scalars that its arithmetic represents
// exactly, and no C where beta is 0.
absl::Status RunProduct(const Kernel& kernel, const Launch& launch);

}  // namespace gemm
