// The tables of all families. A new family adds its function here and a line in
// catalogue.cc.
#pragma once

#include "absl/types/span.h"
#include "gemm/kernel.h"

namespace gemm {

absl::Span<const Kernel> HostRows();            // host/rows.cc
absl::Span<const Kernel> SimtRows();            // simt/rows.cu
absl::Span<const Kernel> SimtSlicedKRows();     // simt/rows.cu
absl::Span<const Kernel> SimtSgemmRows();       // simt/tiled_sgemm_rows.cu
absl::Span<const Kernel> SimtBlockRows();       // simt/tiled_block_rows.cu
absl::Span<const Kernel> SimtHgemmRows();       // simt/tiled_hgemm_rows.cu
absl::Span<const Kernel> WmmaStepRows();        // wmma/step_rows.cu
absl::Span<const Kernel> WmmaStageRows();       // wmma/stage_rows.cu
absl::Span<const Kernel> WmmaLargeTileRows();   // wmma/large_tile_rows.cu
absl::Span<const Kernel> WmmaTf32Rows();        // wmma/tf32_rows.cu
absl::Span<const Kernel> MmaStageRows();        // mma/stage_rows.cu
absl::Span<const Kernel> MmaDsmemRows();        // mma/dsmem_rows.cu
absl::Span<const Kernel> MmaX2Rows();           // mma/x2_rows.cu
absl::Span<const Kernel> GroupedF16Rows();      // grouped/f16_rows.cu
absl::Span<const Kernel> GroupedBF16Rows();     // grouped/bf16_rows.cu
absl::Span<const Kernel> GroupedE4M3Rows();     // grouped/e4m3_rows.cu
absl::Span<const Kernel> GroupedE5M2Rows();     // grouped/e5m2_rows.cu
absl::Span<const Kernel> HopperF16Rows();       // hopper/f16_rows.cu
absl::Span<const Kernel> HopperBF16Rows();      // hopper/bf16_rows.cu
absl::Span<const Kernel> HopperF16Acc16Rows();  // hopper/f16acc16_rows.cu
absl::Span<const Kernel> HopperF32Rows();       // hopper/f32/rows.cu
absl::Span<const Kernel> HopperTF32Rows();      // hopper/tf32_rows.cu
absl::Span<const Kernel> HopperF32x3Rows();     // hopper/f32x3_rows.cu
absl::Span<const Kernel> HopperE4M3Rows();      // hopper/e4m3_rows.cu
absl::Span<const Kernel> HopperE5M2Rows();      // hopper/e5m2_rows.cu
absl::Span<const Kernel> HopperS8Rows();        // hopper/s8_rows.cu
absl::Span<const Kernel> CublasRows();          // blas/cublas.cc
absl::Span<const Kernel> CublasLtRows();        // blas/cublas_lt.cc

}  // namespace gemm
