// The WMMA pipelines with 128x128 tiles.
#include "kernels/core/families.h"
#include "kernels/wmma/rows.cuh"
#include "kernels/wmma/variants.h"

namespace gemm {
namespace wmma {

struct StageTable {
  static constexpr Config kConfigs[] = {
      Stages(2), Stages(2).F32(2), StagesDsmem(2), StagesDsmem(2).F32(2),
      Stages(3), Stages(3).F32(2), StagesDsmem(3), StagesDsmem(3).F32(2),
      Stages(4), Stages(4).F32(2), StagesDsmem(4), StagesDsmem(4).F32(2),
  };
};

namespace {
constexpr auto kRows = MakeWmmaRows<StageTable>();
}  // namespace

}  // namespace wmma

absl::Span<const Kernel> WmmaStageRows() { return wmma::kRows; }

}  // namespace gemm
