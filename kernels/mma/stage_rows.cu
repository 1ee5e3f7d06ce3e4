// The variants that fill shared memory through registers, or in static stages.
#include "kernels/core/families.h"
#include "kernels/mma/rows.cuh"
#include "kernels/mma/variants.h"

namespace gemm {
namespace mma {

struct StageTable {
  static constexpr Row kRows[] = {
      {"hgemm_mma_m16n8k16_naive", "one warp, one tile of 16 x 8", Naive()},
      {"hgemm_mma_m16n8k16_naive_f32acc", "one warp, one tile of 16 x 8; sums in f32",
       Naive().F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4", "eight warps, each 64 x 32", Warp4x4()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_f32acc", "eight warps, each 64 x 32; sums in f32",
       Warp4x4().F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage2", "cp.async pipeline of 2 stages, padded",
       Stages(2)},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage2_f32acc",
       "cp.async pipeline of 2 stages, padded; sums in f32", Stages(2).F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage2_tn",
       "cp.async pipeline of 2 stages, padded; B is n x k", Stages(2).Tn()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage2_tn_f32acc",
       "cp.async pipeline of 2 stages, padded; B is n x k; sums in f32", Stages(2).Tn().F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage3", "cp.async pipeline of 3 stages, padded",
       Stages(3)},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage3_f32acc",
       "cp.async pipeline of 3 stages, padded; sums in f32", Stages(3).F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage3_tn",
       "cp.async pipeline of 3 stages, padded; B is n x k", Stages(3).Tn()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage3_tn_f32acc",
       "cp.async pipeline of 3 stages, padded; B is n x k; sums in f32", Stages(3).Tn().F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage4", "cp.async pipeline of 4 stages, padded",
       Stages(4)},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage4_f32acc",
       "cp.async pipeline of 4 stages, padded; sums in f32", Stages(4).F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage4_tn",
       "cp.async pipeline of 4 stages, padded; B is n x k", Stages(4).Tn()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage4_tn_f32acc",
       "cp.async pipeline of 4 stages, padded; B is n x k; sums in f32", Stages(4).Tn().F32()},
  };
};

}  // namespace mma

absl::Span<const Kernel> MmaStageRows() {
  static constexpr auto kRows = mma::MakeTableRows<mma::StageTable>();
  return kRows;
}

}  // namespace gemm
