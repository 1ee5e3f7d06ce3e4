// The cp.async pipelines in dynamic shared memory.
#include "kernels/core/families.h"
#include "kernels/mma/rows.cuh"
#include "kernels/mma/variants.h"

namespace gemm {
namespace mma {

struct DsmemTable {
  static constexpr Row kRows[] = {
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage2_dsmem",
       "cp.async pipeline of 2 stages, padded, dynamic shared memory", StagesDsmem(2)},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage2_dsmem_f32acc",
       "cp.async pipeline of 2 stages, padded, dynamic shared memory; sums in f32",
       StagesDsmem(2).F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage2_dsmem_tn",
       "cp.async pipeline of 2 stages, padded, dynamic shared memory; B is n x k",
       StagesDsmem(2).Tn()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage2_dsmem_tn_f32acc",
       "cp.async pipeline of 2 stages, padded, dynamic shared memory; B is n x k; sums in f32",
       StagesDsmem(2).Tn().F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage3_dsmem",
       "cp.async pipeline of 3 stages, padded, dynamic shared memory", StagesDsmem(3)},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage3_dsmem_f32acc",
       "cp.async pipeline of 3 stages, padded, dynamic shared memory; sums in f32",
       StagesDsmem(3).F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage3_dsmem_tn",
       "cp.async pipeline of 3 stages, padded, dynamic shared memory; B is n x k",
       StagesDsmem(3).Tn()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage3_dsmem_tn_f32acc",
       "cp.async pipeline of 3 stages, padded, dynamic shared memory; B is n x k; sums in f32",
       StagesDsmem(3).Tn().F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage4_dsmem",
       "cp.async pipeline of 4 stages, padded, dynamic shared memory", StagesDsmem(4)},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage4_dsmem_f32acc",
       "cp.async pipeline of 4 stages, padded, dynamic shared memory; sums in f32",
       StagesDsmem(4).F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage4_dsmem_tn",
       "cp.async pipeline of 4 stages, padded, dynamic shared memory; B is n x k",
       StagesDsmem(4).Tn()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage4_dsmem_tn_f32acc",
       "cp.async pipeline of 4 stages, padded, dynamic shared memory; B is n x k; sums in f32",
       StagesDsmem(4).Tn().F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage2_dsmem_xor",
       "cp.async pipeline of 2 stages, XOR-swizzled", StagesDsmemXor(2)},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage2_dsmem_xor_f32acc",
       "cp.async pipeline of 2 stages, XOR-swizzled; sums in f32", StagesDsmemXor(2).F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage2_dsmem_xor_tn",
       "cp.async pipeline of 2 stages, XOR-swizzled; B is n x k", StagesDsmemXor(2).Tn()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage2_dsmem_xor_tn_f32acc",
       "cp.async pipeline of 2 stages, XOR-swizzled; B is n x k; sums in f32",
       StagesDsmemXor(2).Tn().F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage3_dsmem_xor",
       "cp.async pipeline of 3 stages, XOR-swizzled", StagesDsmemXor(3)},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage3_dsmem_xor_f32acc",
       "cp.async pipeline of 3 stages, XOR-swizzled; sums in f32", StagesDsmemXor(3).F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage3_dsmem_xor_tn",
       "cp.async pipeline of 3 stages, XOR-swizzled; B is n x k", StagesDsmemXor(3).Tn()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage3_dsmem_xor_tn_f32acc",
       "cp.async pipeline of 3 stages, XOR-swizzled; B is n x k; sums in f32",
       StagesDsmemXor(3).Tn().F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage4_dsmem_xor",
       "cp.async pipeline of 4 stages, XOR-swizzled", StagesDsmemXor(4)},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage4_dsmem_xor_f32acc",
       "cp.async pipeline of 4 stages, XOR-swizzled; sums in f32", StagesDsmemXor(4).F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage4_dsmem_xor_tn",
       "cp.async pipeline of 4 stages, XOR-swizzled; B is n x k", StagesDsmemXor(4).Tn()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage4_dsmem_xor_tn_f32acc",
       "cp.async pipeline of 4 stages, XOR-swizzled; B is n x k; sums in f32",
       StagesDsmemXor(4).Tn().F32()},
  };
};

}  // namespace mma

absl::Span<const Kernel> MmaDsmemRows() {
  static constexpr auto kRows = mma::MakeTableRows<mma::DsmemTable>();
  return kRows;
}

}  // namespace gemm
