// The mma.sync pipelines in dynamic shared memory.
#include "kernels/core/families.h"
#include "kernels/mma/rows.cuh"
#include "kernels/mma/variants.h"

namespace gemm {
namespace mma {

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

}  // namespace mma

absl::Span<const Kernel> MmaDsmemRows() {
  static constexpr auto kRows = mma::MakeTableRows<mma::DsmemTable>();
  return kRows;
}

}  // namespace gemm
