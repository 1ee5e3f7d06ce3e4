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
__device__ __forceinline__ void StageSums(const Product& product, std::byte* staged,
                                          unsigned lane) {
  constexpr StagedSums kStaged{Product::kRows, Product::kCols};
  const int first = kStaged.Offset(static_cast<int>(lane / 4), static_cast<int>(lane % 4 / 2)) +
                    static_cast<int>(lane % 2 * 8);
#pragma unroll
  for (int block = 0; block < Product::kRows / 16; ++block) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int j = 0; j < Product::kCols / 8; ++j) {
        const int offset = kStaged.Beside(first, block * 16 + half * 8, 2 * j);
        const float* pair = &product.sums[block][4 * j + 2 * half];
        *reinterpret_cast<float2*>(staged + offset) = {pair[0], pair[1]};
      }
    }
  }
}

// Calls `store(sums, i, j)` for the runs of kRun staged sums that begin in the
// m x n of D; the thread block's tile begins at (first_i, first_j). At most
// kMost are under way at a time.
template <int kRun, int kMost, class Product, class Store>
__device__ __forceinline__ void ForEachRun(const Product& product, const std::byte* staged,
                                           int64_t first_i, int64_t first_j, int64_t m, int64_t n,
                                           unsigned lane, const Store& store) {
  constexpr StagedSums kStaged{Product::kRows, Product::kCols};
  constexpr int kRunsPerRow = kStaged.cols / kRun;
  constexpr int kRuns = kStaged.rows * kRunsPerRow / 32;  // of a lane
  constexpr int kBatch = kRuns % kMost == 0 ? kMost : kRuns % 2 == 0 && kMost % 2 == 0 ? 2 : 1;
#pragma unroll 1
  for (int batch = 0; batch < kRuns; batch += kBatch) {
    float sums[kBatch][kRun];
#pragma unroll
    for (int x = 0; x < kBatch; ++x) {
      const unsigned run = (batch + x) * 32 + lane;
      const int row = static_cast<int>(run / kRunsPerRow);
      const int first_quad = static_cast<int>(run % kRunsPerRow * (kRun / 4));
#pragma unroll
      for (int quad = 0; quad < kRun / 4; ++quad) {
        const int offset = kStaged.Offset(row, first_quad + quad);
        *reinterpret_cast<float4*>(&sums[x][4 * quad]) =
            *reinterpret_cast<const float4*>(staged + offset);
      }
    }
#pragma unroll
    for (int x = 0; x < kBatch; ++x) {
      const unsigned run = (batch + x) * 32 + lane;
      const int64_t i = first_i + product.TileRow(static_cast<int>(run / kRunsPerRow));
      const int64_t j = first_j + product.TileCol() + run % kRunsPerRow * kRun;
      if (i < m && j < n) store(sums[x], i, j);
    }
  }
}

// Writes the elements of D that lie in the m x n of it out of staged sums, in
// runs of 16 bytes; the thread block's tile begins at (first_i, first_j).
template <class Product, DType kD>
__device__ __forceinline__ void StoreStaged(const Product& product, const std::byte* staged,
                                            const Epilogue<kD>& epilogue, int64_t first_i,
                                            int64_t first_j, int64_t m, int64_t n, unsigned lane) {
  constexpr int kRun = static_cast<int>(kRowAlignment / SizeOf(kD));
  using Sums = float[kRun];
  if (epilogue.OnlyScales() && n % kRun == 0) {
    ForEachRun<kRun, 4>(product, staged, first_i, first_j, m, n, lane,
                        [&](const Sums& sums, int64_t i, int64_t j) {
                          epilogue.template StoreScaledRun<kRun>(sums, i, j);
                        });
  } else {
    ForEachRun<kRun, 1>(product, staged, first_i, first_j, m, n, lane,
                        [&](const Sums& sums, int64_t i, int64_t j) {
                          epilogue.template StoreRun<kRun>(sums, i, j, n);
                        });
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
