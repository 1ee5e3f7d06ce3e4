// The configurations of f32 on CUDA cores.
#pragma once

#include "kernels/hopper/f32/config.h"

namespace gemm {

// What each is for: docs/kernels.md.
inline constexpr HopperF32Config kHopperF32Configs[] = {
    {.tile_m = 128, .tile_n = 256, .stages = 4, .lanes_m = 8, .stream = true},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .thread_n = 8, .split = 2},
    {.tile_m = 64, .tile_n = 128, .stages = 4, .thread_n = 8, .blocks_per_sm = 2},
    // For a small D.
    {.tile_m = 64,
     .tile_n = 64,
     .stages = 6,
     .thread_m = 4,
     .thread_n = 8,
     .split = 2,
     .blocks_per_sm = 2},
    {.tile_m = 64, .tile_n = 32, .stages = 4, .thread_m = 4, .thread_n = 4, .blocks_per_sm = 4},
    {.tile_m = 64,
     .tile_n = 32,
     .stages = 4,
     .thread_m = 4,
     .thread_n = 4,
     .split = 2,
     .blocks_per_sm = 4},
    {.tile_m = 32,
     .tile_n = 64,
     .stages = 4,
     .thread_m = 4,
     .thread_n = 4,
     .split = 4,
     .blocks_per_sm = 4},
};

}  // namespace gemm
