// Estimates the time of a Hopper kernel, so that kernels can be ranked without measuring.
#pragma once

#include "gemm/problem.h"
#include "kernels/hopper/config.h"

namespace gemm {

// Seconds of one launch, including the transposes that the kernel needs. They follow from waves of
// tiles and from the bottleneck of a tile: the tensor cores, the L2 or the memory. For a group that
// the kernel does not take in one launch, seconds of all its launches. The constants are those of
// an H200. On another chip the times are off, but their order hardly is. The epilogue counts by the
// bytes of C alone. Infinite for a product that the kernel refuses for its size. Source:
// docs/results/auto.md.
double EstimateHopper(const HopperConfig& config, const Problem& p);

}  // namespace gemm
