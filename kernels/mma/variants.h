// The variants of the mma.sync family, called as in their names. Tn() and F32() of each
// are variants too.
#pragma once

#include "kernels/mma/config.h"

namespace gemm::mma {

// One warp, one mma tile.
constexpr Config Naive() { return {.warps_m = 1, .warps_n = 1, .tiles_m = 1, .tiles_n = 1}; }

constexpr Config Warp4x4() { return {}; }

constexpr Config Stages(int stages) { return {.stages = stages}; }

constexpr Config StagesDsmem(int stages) { return {.stages = stages, .dynamic_shared = true}; }

constexpr Config StagesDsmemXor(int stages) {
  return {.stages = stages, .layout = PanelLayout::kXor, .dynamic_shared = true};
}

constexpr Config X2Dsmem(int stages) {
  return {.tile_k = 32,
          .stages = stages,
          .dynamic_shared = true,
          .buffers = FragmentBuffers::kDouble,
          .alternate = true,
          .store = Store::kCollective,
          .blocks_per_sm = 2};
}

constexpr Config X2DsmemReduced(int stages) {
  return {.tile_k = 32,
          .stages = stages,
          .dynamic_shared = true,
          .buffers = FragmentBuffers::kRotating,
          .alternate = true,
          .store = Store::kCollective,
          .blocks_per_sm = 3};
}

// Three blocks an SM hide the latency of copies that few stages leave. With four stages
// two blocks suffice, and persistent blocks pay.
constexpr Config X2DsmemXor(int stages) {
  return {.tile_k = 32,
          .stages = stages,
          .layout = PanelLayout::kXor,
          .dynamic_shared = true,
          .buffers = FragmentBuffers::kRotating,
          .alternate = true,
          .store = Store::kCollective,
          .persistent = stages == 4,
          .blocks_per_sm = stages == 4 ? 2 : 3};
}

}  // namespace gemm::mma
