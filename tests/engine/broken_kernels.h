// Kernels that break a GPU on purpose.
#pragma once

#include "gemm/kernel.h"

namespace gemmd {

// Writes where no memory is: CUDA reports an illegal address, and the device is lost.
const gemm::Kernel& IllegalKernel();
// Never ends, until its process does.
const gemm::Kernel& EndlessKernel();

}  // namespace gemmd
