// The variants of the mma.sync family that the catalogue has, one table for each file of
// rows. They are structs because nvcc names kernels by types.
#pragma once

#include "kernels/mma/variants.h"

namespace gemm::mma {

// The mma.sync variants with one stage, and the pipelines in static shared memory.
struct StageTable {
  static constexpr Config kConfigs[] = {
      Naive(),   Naive().F32(),   Warp4x4(),      Warp4x4().F32(),
      Stages(2), Stages(2).F32(), Stages(2).Tn(), Stages(2).Tn().F32(),
      Stages(3), Stages(3).F32(), Stages(3).Tn(), Stages(3).Tn().F32(),
      Stages(4), Stages(4).F32(), Stages(4).Tn(), Stages(4).Tn().F32(),
  };
};

// The mma.sync pipelines in dynamic shared memory.
struct DsmemTable {
  static constexpr Config kConfigs[] = {
      StagesDsmem(2),         StagesDsmem(2).F32(),
      StagesDsmem(2).Tn(),    StagesDsmem(2).Tn().F32(),
      StagesDsmem(3),         StagesDsmem(3).F32(),
      StagesDsmem(3).Tn(),    StagesDsmem(3).Tn().F32(),
      StagesDsmem(4),         StagesDsmem(4).F32(),
      StagesDsmem(4).Tn(),    StagesDsmem(4).Tn().F32(),
      StagesDsmemXor(2),      StagesDsmemXor(2).F32(),
      StagesDsmemXor(2).Tn(), StagesDsmemXor(2).Tn().F32(),
      StagesDsmemXor(3),      StagesDsmemXor(3).F32(),
      StagesDsmemXor(3).Tn(), StagesDsmemXor(3).Tn().F32(),
      StagesDsmemXor(4),      StagesDsmemXor(4).F32(),
      StagesDsmemXor(4).Tn(), StagesDsmemXor(4).Tn().F32(),
  };
};

// The mma.sync pipelines with k-tiles of 32, fragments read ahead and collective stores.
struct X2Table {
  static constexpr Config kConfigs[] = {
      X2Dsmem(2),
      X2Dsmem(2).F32(),
      X2Dsmem(2).Tn(),
      X2Dsmem(2).Tn().F32(),
      X2Dsmem(3),
      X2Dsmem(3).F32(),
      X2Dsmem(3).Tn(),
      X2Dsmem(3).Tn().F32(),
      X2Dsmem(4),
      X2Dsmem(4).F32(),
      X2Dsmem(4).Tn(),
      X2Dsmem(4).Tn().F32(),
      X2DsmemReduced(2),
      X2DsmemReduced(2).F32(),
      X2DsmemReduced(2).Tn(),
      X2DsmemReduced(2).Tn().F32(),
      X2DsmemReduced(3),
      X2DsmemReduced(3).F32(),
      X2DsmemReduced(3).Tn(),
      X2DsmemReduced(3).Tn().F32(),
      X2DsmemReduced(4),
      X2DsmemReduced(4).F32(),
      X2DsmemReduced(4).Tn(),
      X2DsmemReduced(4).Tn().F32(),
      X2DsmemXor(2),
      X2DsmemXor(2).F32(),
      X2DsmemXor(2).Tn(),
      X2DsmemXor(2).Tn().F32(),
      X2DsmemXor(3),
      X2DsmemXor(3).F32(),
      X2DsmemXor(3).Tn(),
      X2DsmemXor(3).Tn().F32(),
      X2DsmemXor(4),
      X2DsmemXor(4).F32(),
      X2DsmemXor(4).Tn(),
      X2DsmemXor(4).Tn().F32(),
  };
};

}  // namespace gemm::mma
