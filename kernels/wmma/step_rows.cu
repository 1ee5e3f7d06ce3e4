// The steps from one fragment a warp to the double-buffered kernels.
#include "kernels/core/families.h"
#include "kernels/wmma/rows.cuh"
#include "kernels/wmma/variants.h"

namespace gemm {
namespace wmma {

struct StepTable {
  static constexpr Row kRows[] = {
      {"hgemm_wmma_m16n16k16_naive", "one warp, one 16x16 tile", Naive()},
      {"hgemm_wmma_m16n16k16_naive_f32acc", "one warp, one 16x16 tile; sums in f32",
       Naive().F32(16)},
      {"hgemm_wmma_m16n16k16_mma4x2", "64x32 tile, 8 warps of one fragment", OneFragment()},
      {"hgemm_wmma_m16n16k16_mma4x2_f32acc", "64x32 tile, 8 warps of one fragment; sums in f32",
       OneFragment().F32(4)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4", "128x128 tile, 8 warps of 2x4 fragments", Warp2x4()},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4_f32acc",
       "128x128 tile, 8 warps of 2x4 fragments; sums in f32", Warp2x4().F32(2)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4_async", "128x128 tile, cp.async", Async()},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4_async_f32acc", "128x128 tile, cp.async; sums in f32",
       Async().F32(2)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4_async_offset",
       "128x128 tile, cp.async, padded shared memory", AsyncPadded()},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4_async_offset_f32acc",
       "128x128 tile, cp.async, padded shared memory; sums in f32", AsyncPadded().F32(2)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4_dbuf_async",
       "128x128 tile, cp.async, padded, double-buffered", DoubleBuffer()},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4_dbuf_async_f32acc",
       "128x128 tile, cp.async, padded, double-buffered; sums in f32", DoubleBuffer().F32(2)},
      {"hgemm_wmma_m16n16k16_mma4x4_warp2x2x2_dbuf_async",
       "128x128x32 tile, 16 warps, cp.async, padded, double-buffered", SixteenWarps()},
      {"hgemm_wmma_m16n16k16_mma4x4_warp2x2x2_dbuf_async_f32acc",
       "128x128x32 tile, 16 warps, cp.async, padded, double-buffered; sums in f32",
       SixteenWarps().F32(2)},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4x2_rbuf_async",
       "128x128x32 tile, cp.async, padded, registers and shared memory double-buffered",
       RegisterBuffer()},
      {"hgemm_wmma_m16n16k16_mma4x2_warp2x4x2_rbuf_async_f32acc",
       "128x128x32 tile, cp.async, padded, registers and shared memory double-buffered; "
       "sums in f32",
       RegisterBuffer().F32(2)},
      {"hgemm_wmma_m32n8k16_mma2x4_warp2x4_dbuf_async",
       "128x128 tile of 32x8 fragments, cp.async, padded, double-buffered", Fragments32x8()},
      {"hgemm_wmma_m32n8k16_mma2x4_warp2x4_dbuf_async_f32acc",
       "128x128 tile of 32x8 fragments, cp.async, padded, double-buffered; sums in f32",
       Fragments32x8().F32(2)},
  };
};

namespace {
constexpr auto kRows = MakeWmmaRows<StepTable>();
}  // namespace

}  // namespace wmma

absl::Span<const Kernel> WmmaStepRows() { return wmma::kRows; }

}  // namespace gemm
