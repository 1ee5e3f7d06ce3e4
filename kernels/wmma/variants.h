// The variants of the WMMA family, called as in their names. F32() of each f16 variant is
// a variant too.
#pragma once

#include "kernels/wmma/config.h"

namespace gemm::wmma {

// One warp, one fragment.
constexpr Config Naive() {
  return {.warps_m = 1,
          .warps_n = 1,
          .tiles_m = 1,
          .tiles_n = 1,
          .copies = Copies::kThroughRegisters,
          .blocks_per_sm = 16};
}

constexpr Config OneFragment() {
  return {.tiles_m = 1, .tiles_n = 1, .copies = Copies::kThroughRegisters, .blocks_per_sm = 4};
}

constexpr Config Warp2x4() { return {.copies = Copies::kThroughRegisters}; }

constexpr Config Async() { return {}; }

constexpr Config AsyncPadded() { return {.padded = true}; }

constexpr Config DoubleBuffer() { return {.stages = 2, .padded = true}; }

constexpr Config SixteenWarps() {
  return {
      .warps_n = 4, .tiles_n = 2, .tile_k = 32, .stages = 2, .padded = true, .blocks_per_sm = 2};
}

constexpr Config RegisterBuffer() {
  return {.tile_k = 32,
          .stages = 2,
          .padded = true,
          .reads = FragmentReads::kAheadInKTile,
          .blocks_per_sm = 2};
}

constexpr Config Fragments32x8() {
  return {.wmma_m = 32, .wmma_n = 8, .warps_m = 2, .warps_n = 4, .stages = 2, .padded = true};
}

constexpr Config Stages(int stages) {
  return {.stages = stages, .padded = true, .order = Order::kBanded};
}

// Dynamic shared memory has room for longer k-tiles. Their copies touch fewer lines of A
// for the same bytes.
constexpr Config StagesDsmem(int stages) {
  Config config = Stages(stages);
  config.tile_k = 32;
  config.reads = FragmentReads::kRotating;
  config.dynamic_shared = true;
  return config;
}

// The f16 accumulators of a warp's 4 x 4 fragments take 64 registers. Two blocks share an
// SM. With four stages there is room for one, which has registers for a second set of
// fragments.
constexpr Config Tile256x128(int stages) {
  Config config = StagesDsmem(stages);
  config.tiles_m = 4;
  config.blocks_per_sm = stages < 4 ? 2 : 1;
  if (stages == 4) config.reads = FragmentReads::kAhead;
  return config;
}

// f32 accumulators take 128 registers. The one block has registers for a second set of
// fragments.
constexpr Config Tile256x128F32(int stages) {
  Config config = Tile256x128(stages).F32(1);
  config.reads = FragmentReads::kAhead;
  return config;
}

constexpr Config Tile256x256(int stages) {
  Config config = StagesDsmem(stages);
  config.warps_n = 4;
  config.tiles_m = 4;
  config.blocks_per_sm = 1;
  return config;
}

// f32 operands rounded to TF32.
constexpr Config Tf32(int stages) {
  return {.type = DType::kF32,
          .accumulate = DType::kF32,
          .wmma_k = 8,
          .tile_k = 8,
          .stages = stages,
          .padded = true,
          .order = Order::kBanded,
          .blocks_per_sm = 2};
}

}  // namespace gemm::wmma
