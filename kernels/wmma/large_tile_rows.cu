// The cp.async pipelines with 256x128 and 256x256 tiles.
#include "kernels/core/families.h"
#include "kernels/wmma/rows.cuh"
#include "kernels/wmma/variants.h"

namespace gemm {
namespace wmma {

struct LargeTileTable {
  static constexpr Row kRows[] = {
      {"hgemm_wmma_m16n16k16_mma4x2_warp4x4_stage2_dsmem",
       "256x128 tile, 2 stages in dynamic shared memory", Tile256x128(2)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp4x4_stage2_dsmem_f32acc",
       "256x128 tile, 2 stages in dynamic shared memory; sums in f32", Tile256x128F32(2)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp4x4_stage3_dsmem",
       "256x128 tile, 3 stages in dynamic shared memory", Tile256x128(3)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp4x4_stage3_dsmem_f32acc",
       "256x128 tile, 3 stages in dynamic shared memory; sums in f32", Tile256x128F32(3)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp4x4_stage4_dsmem",
       "256x128 tile, 4 stages in dynamic shared memory", Tile256x128(4)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp4x4_stage4_dsmem_f32acc",
       "256x128 tile, 4 stages in dynamic shared memory; sums in f32", Tile256x128F32(4)},
      {"hgemm_wmma_m16n16k16_mma4x4_warp4x4_stage2_dsmem",
       "256x256 tile, 16 warps, 2 stages in dynamic shared memory", Tile256x256(2)},
      {"hgemm_wmma_m16n16k16_mma4x4_warp4x4_stage3_dsmem",
       "256x256 tile, 16 warps, 3 stages in dynamic shared memory", Tile256x256(3)},
      {"hgemm_wmma_m16n16k16_mma4x4_warp4x4_stage4_dsmem",
       "256x256 tile, 16 warps, 4 stages in dynamic shared memory", Tile256x256(4)},
  };
};

namespace {
constexpr auto kRows = MakeWmmaRows<LargeTileTable>();
}  // namespace

}  // namespace wmma

absl::Span<const Kernel> WmmaLargeTileRows() { return wmma::kRows; }

}  // namespace gemm
