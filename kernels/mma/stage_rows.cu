// The mma.sync variants with one stage, and the pipelines in static shared memory.
#include "kernels/core/families.h"
#include "kernels/mma/rows.cuh"
#include "kernels/mma/variants.h"

namespace gemm {
namespace mma {

struct StageTable {
  static constexpr Config kConfigs[] = {
      Naive(),   Naive().F32(),   Warp4x4(),      Warp4x4().F32(),
      Stages(2), Stages(2).F32(), Stages(2).Tn(), Stages(2).Tn().F32(),
      Stages(3), Stages(3).F32(), Stages(3).Tn(), Stages(3).Tn().F32(),
      Stages(4), Stages(4).F32(), Stages(4).Tn(), Stages(4).Tn().F32(),
  };
};

}  // namespace mma

absl::Span<const Kernel> MmaStageRows() {
  static constexpr auto kRows = mma::MakeTableRows<mma::StageTable>();
  return kRows;
}

}  // namespace gemm
