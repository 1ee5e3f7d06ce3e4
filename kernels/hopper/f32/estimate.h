// Estimates the time of a Hopper kernel of f32 on CUDA cores.
#pragma once

#include "gemm/problem.h"
#include "kernels/hopper/f32/config.h"

namespace gemm {

// Seconds of one launch, including the transposes that the kernel needs. They follow from waves of
// tiles and from the bottleneck of a tile: the CUDA cores, the L2 or the memory. The constants are
// those of an H200. Infinite for a product that the kernel refuses for its size.
double EstimateHopperF32(const HopperF32Config& config, const Problem& p);

}  // namespace gemm
