// From a warp's sums to D: through shared memory, so that whole rows are
// written, and D's type is looked at once.
#pragma once

#include <cstdint>

#include "kernels/epilogue/epilogue.cuh"
#include "kernels/grouped/staged_sums.h"

namespace gemm {

// Puts the sums of a warp into its own part of shared memory; see wgmma.cuh for
// which lane holds what.
template <class Product>
__device__ __forceinline__ void StageSums(const Product& product, std::byte* staged, int lane) {
  constexpr StagedSums kStaged{Product::kRows, Product::kCols};
#pragma unroll
  for (int block = 0; block < Product::kRows / 16; ++block) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = block * 16 + half * 8 + lane / 4;
#pragma unroll
      for (int j = 0; j < Product::kCols / 8; ++j) {
        const int offset = kStaged.Offset(row, 2 * j + lane % 4 / 2) + lane % 2 * 8;
        const float* pair = &product.sums[block][4 * j + 2 * half];
        *reinterpret_cast<float2*>(staged + offset) = {pair[0], pair[1]};
      }
    }
  }
}

// Writes the elements of D that lie in the m x n of it out of staged sums, in
// runs of 16 bytes; the thread block's tile begins at (first_i, first_j).
template <class Product, DType kD>
__device__ __forceinline__ void StoreStaged(const Product& product, const std::byte* staged,
                                            const Epilogue<kD>& epilogue, int64_t first_i,
                                            int64_t first_j, int64_t m, int64_t n, int lane) {
  constexpr StagedSums kStaged{Product::kRows, Product::kCols};
  constexpr int kRun = static_cast<int>(kRowAlignment / SizeOf(kD));
  constexpr int kRunsPerRow = kStaged.cols / kRun;
  constexpr int kRuns = kStaged.rows * kRunsPerRow / 32;  // of a lane
  // So many are under way at a time.
  constexpr int kBatch = kRuns % 4 == 0 ? 4 : kRuns % 2 == 0 ? 2 : 1;
#pragma unroll 1
  for (int batch = 0; batch < kRuns; batch += kBatch) {
    float sums[kBatch][kRun];
#pragma unroll
    for (int x = 0; x < kBatch; ++x) {
      const int run = (batch + x) * 32 + lane;
#pragma unroll
      for (int quad = 0; quad < kRun / 4; ++quad) {
        const int offset = kStaged.Offset(run / kRunsPerRow, run % kRunsPerRow * kRun / 4 + quad);
        *reinterpret_cast<float4*>(&sums[x][4 * quad]) =
            *reinterpret_cast<const float4*>(staged + offset);
      }
    }
#pragma unroll
    for (int x = 0; x < kBatch; ++x) {
      const int run = (batch + x) * 32 + lane;
      const int64_t i = first_i + product.TileRow(run / kRunsPerRow);
      const int64_t j = first_j + product.TileCol() + run % kRunsPerRow * kRun;
      if (i < m && j < n) epilogue.template StoreRun<kRun>(sums[x], i, j, n);
    }
  }
}

// An epilogue's twin for elements of another type: they differ in nothing else.
template <DType kTo, DType kFrom>
__device__ __forceinline__ Epilogue<kTo> Retyped(const Epilogue<kFrom>& from) {
  using Type = typename Epilogue<kTo>::Type;
  return {
      .d = reinterpret_cast<Type*>(from.d),
      .ldd = from.ldd,
      .c = reinterpret_cast<const Type*>(from.c),
      .ldc = from.ldc,
      .bias = reinterpret_cast<const Type*>(from.bias),
      .alpha = from.alpha,
      .beta = from.beta,
      .leaky_slope = from.leaky_slope,
      .bias_axis = from.bias_axis,
      .activation = from.activation,
  };
}

}  // namespace gemm
