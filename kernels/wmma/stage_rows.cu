// The cp.async pipelines with 128x128 tiles.
#include "kernels/core/families.h"
#include "kernels/wmma/rows.cuh"
#include "kernels/wmma/variants.h"

namespace gemm {
namespace wmma {

struct StageTable {
  static constexpr Row kRows[] = {
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4_stage2", "128x128 tile, 2 stages", Stages(2)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4_stage2_f32acc", "128x128 tile, 2 stages; sums in f32",
       Stages(2).F32(2)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4_stage2_dsmem",
       "128x128 tile, 2 stages in dynamic shared memory", StagesDsmem(2)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4_stage2_dsmem_f32acc",
       "128x128 tile, 2 stages in dynamic shared memory; sums in f32", StagesDsmem(2).F32(2)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4_stage3", "128x128 tile, 3 stages", Stages(3)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4_stage3_f32acc", "128x128 tile, 3 stages; sums in f32",
       Stages(3).F32(2)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4_stage3_dsmem",
       "128x128 tile, 3 stages in dynamic shared memory", StagesDsmem(3)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4_stage3_dsmem_f32acc",
       "128x128 tile, 3 stages in dynamic shared memory; sums in f32", StagesDsmem(3).F32(2)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4_stage4", "128x128 tile, 4 stages", Stages(4)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4_stage4_f32acc", "128x128 tile, 4 stages; sums in f32",
       Stages(4).F32(2)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4_stage4_dsmem",
       "128x128 tile, 4 stages in dynamic shared memory", StagesDsmem(4)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4_stage4_dsmem_f32acc",
       "128x128 tile, 4 stages in dynamic shared memory; sums in f32", StagesDsmem(4).F32(2)},
  };
};

namespace {
constexpr auto kRows = MakeWmmaRows<StageTable>();
}  // namespace

}  // namespace wmma

absl::Span<const Kernel> WmmaStageRows() { return wmma::kRows; }

}  // namespace gemm
