// The variants of the WMMA family that the catalogue has, one table for each file of rows.
// They are structs because nvcc names kernels by types.
#pragma once

#include "kernels/wmma/variants.h"

namespace gemm::wmma {

// The WMMA steps from one fragment a warp to the double-buffered kernels.
struct StepTable {
  static constexpr Config kConfigs[] = {
      Naive(),         Naive().F32(16),        OneFragment(),    OneFragment().F32(4),
      Warp2x4(),       Warp2x4().F32(2),       Async(),          Async().F32(2),
      AsyncPadded(),   AsyncPadded().F32(2),   DoubleBuffer(),   DoubleBuffer().F32(2),
      SixteenWarps(),  SixteenWarps().F32(2),  RegisterBuffer(), RegisterBuffer().F32(2),
      Fragments32x8(), Fragments32x8().F32(2),
  };
};

// The WMMA pipelines with 128x128 tiles.
struct StageTable {
  static constexpr Config kConfigs[] = {
      Stages(2), Stages(2).F32(2), StagesDsmem(2), StagesDsmem(2).F32(2),
      Stages(3), Stages(3).F32(2), StagesDsmem(3), StagesDsmem(3).F32(2),
      Stages(4), Stages(4).F32(2), StagesDsmem(4), StagesDsmem(4).F32(2),
  };
};

// The WMMA pipelines with 256x128 and 256x256 tiles.
struct LargeTileTable {
  static constexpr Config kConfigs[] = {
      Tile256x128(2),    Tile256x128F32(2), Tile256x128(3), Tile256x128F32(3), Tile256x128(4),
      Tile256x128F32(4), Tile256x256(2),    Tile256x256(3), Tile256x256(4),
  };
};

// The WMMA pipelines over f32 operands, rounded to TF32.
struct Tf32Table {
  static constexpr Config kConfigs[] = {
      Tf32(2),
      Tf32(3),
  };
};

}  // namespace gemm::wmma
