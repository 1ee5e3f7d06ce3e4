// The pipelines of double k-tiles, with fragments read ahead and collective stores.
#include "kernels/core/families.h"
#include "kernels/mma/rows.cuh"
#include "kernels/mma/variants.h"

namespace gemm {
namespace mma {

struct X2Table {
  static constexpr Row kRows[] = {
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage2_dsmem",
       "2 stages of double slices, fragments a step ahead, padded", X2Dsmem(2)},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage2_dsmem_f32acc",
       "2 stages of double slices, fragments a step ahead, padded; sums in f32", X2Dsmem(2).F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage2_dsmem_tn",
       "2 stages of double slices, fragments a step ahead, padded; B is n x k", X2Dsmem(2).Tn()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage2_dsmem_tn_f32acc",
       "2 stages of double slices, fragments a step ahead, padded; B is n x k; sums in f32",
       X2Dsmem(2).Tn().F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage3_dsmem",
       "3 stages of double slices, fragments a step ahead, padded", X2Dsmem(3)},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage3_dsmem_f32acc",
       "3 stages of double slices, fragments a step ahead, padded; sums in f32", X2Dsmem(3).F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage3_dsmem_tn",
       "3 stages of double slices, fragments a step ahead, padded; B is n x k", X2Dsmem(3).Tn()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage3_dsmem_tn_f32acc",
       "3 stages of double slices, fragments a step ahead, padded; B is n x k; sums in f32",
       X2Dsmem(3).Tn().F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage4_dsmem",
       "4 stages of double slices, fragments a step ahead, padded", X2Dsmem(4)},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage4_dsmem_f32acc",
       "4 stages of double slices, fragments a step ahead, padded; sums in f32", X2Dsmem(4).F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage4_dsmem_tn",
       "4 stages of double slices, fragments a step ahead, padded; B is n x k", X2Dsmem(4).Tn()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage4_dsmem_tn_f32acc",
       "4 stages of double slices, fragments a step ahead, padded; B is n x k; sums in f32",
       X2Dsmem(4).Tn().F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage2_dsmem_rr",
       "2 stages of double slices, fragments replaced at their last use, padded",
       X2DsmemReduced(2)},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage2_dsmem_rr_f32acc",
       "2 stages of double slices, fragments replaced at their last use, padded; sums in f32",
       X2DsmemReduced(2).F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage2_dsmem_rr_tn",
       "2 stages of double slices, fragments replaced at their last use, padded; B is n x k",
       X2DsmemReduced(2).Tn()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage2_dsmem_rr_tn_f32acc",
       "2 stages of double slices, fragments replaced at their last use, padded; B is n x k; sums "
       "in f32",
       X2DsmemReduced(2).Tn().F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage3_dsmem_rr",
       "3 stages of double slices, fragments replaced at their last use, padded",
       X2DsmemReduced(3)},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage3_dsmem_rr_f32acc",
       "3 stages of double slices, fragments replaced at their last use, padded; sums in f32",
       X2DsmemReduced(3).F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage3_dsmem_rr_tn",
       "3 stages of double slices, fragments replaced at their last use, padded; B is n x k",
       X2DsmemReduced(3).Tn()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage3_dsmem_rr_tn_f32acc",
       "3 stages of double slices, fragments replaced at their last use, padded; B is n x k; sums "
       "in f32",
       X2DsmemReduced(3).Tn().F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage4_dsmem_rr",
       "4 stages of double slices, fragments replaced at their last use, padded",
       X2DsmemReduced(4)},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage4_dsmem_rr_f32acc",
       "4 stages of double slices, fragments replaced at their last use, padded; sums in f32",
       X2DsmemReduced(4).F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage4_dsmem_rr_tn",
       "4 stages of double slices, fragments replaced at their last use, padded; B is n x k",
       X2DsmemReduced(4).Tn()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage4_dsmem_rr_tn_f32acc",
       "4 stages of double slices, fragments replaced at their last use, padded; B is n x k; sums "
       "in f32",
       X2DsmemReduced(4).Tn().F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage2_dsmem_xor",
       "2 stages of double slices, fragments a step ahead, XOR-swizzled", X2DsmemXor(2)},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage2_dsmem_xor_f32acc",
       "2 stages of double slices, fragments a step ahead, XOR-swizzled; sums in f32",
       X2DsmemXor(2).F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage2_dsmem_xor_tn",
       "2 stages of double slices, fragments a step ahead, XOR-swizzled; B is n x k",
       X2DsmemXor(2).Tn()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage2_dsmem_xor_tn_f32acc",
       "2 stages of double slices, fragments a step ahead, XOR-swizzled; B is n x k; sums in f32",
       X2DsmemXor(2).Tn().F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage3_dsmem_xor",
       "3 stages of double slices, fragments a step ahead, XOR-swizzled", X2DsmemXor(3)},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage3_dsmem_xor_f32acc",
       "3 stages of double slices, fragments a step ahead, XOR-swizzled; sums in f32",
       X2DsmemXor(3).F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage3_dsmem_xor_tn",
       "3 stages of double slices, fragments a step ahead, XOR-swizzled; B is n x k",
       X2DsmemXor(3).Tn()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage3_dsmem_xor_tn_f32acc",
       "3 stages of double slices, fragments a step ahead, XOR-swizzled; B is n x k; sums in f32",
       X2DsmemXor(3).Tn().F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage4_dsmem_xor",
       "4 stages of double slices, fragments a step ahead, XOR-swizzled", X2DsmemXor(4)},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage4_dsmem_xor_f32acc",
       "4 stages of double slices, fragments a step ahead, XOR-swizzled; sums in f32",
       X2DsmemXor(4).F32()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage4_dsmem_xor_tn",
       "4 stages of double slices, fragments a step ahead, XOR-swizzled; B is n x k",
       X2DsmemXor(4).Tn()},
      {"hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage4_dsmem_xor_tn_f32acc",
       "4 stages of double slices, fragments a step ahead, XOR-swizzled; B is n x k; sums in f32",
       X2DsmemXor(4).Tn().F32()},
  };
};

}  // namespace mma

absl::Span<const Kernel> MmaX2Rows() {
  static constexpr auto kRows = mma::MakeTableRows<mma::X2Table>();
  return kRows;
}

}  // namespace gemm
