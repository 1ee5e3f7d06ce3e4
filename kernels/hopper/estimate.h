// Guesses how long a Hopper kernel takes, so that kernels can be ranked without measuring.
#pragma once

#include "gemm/problem.h"
#include "kernels/hopper/config.h"

namespace gemm {

// Seconds of one launch, with the transposes that the kernel needs, by waves of tiles and by what
// limits a tile: the tensor cores, the L2 or the memory; of a group that the kernel does not take
// in one launch, of all its launches. The constants are those of an H200, so the times of another
// chip are off, but their order hardly is. The epilogue counts by the bytes of C alone. Infinite
// for a product that the kernel refuses for its size. Source: docs/results/auto.md.
double EstimateHopper(const HopperConfig& config, const Problem& p);

}  // namespace gemm
