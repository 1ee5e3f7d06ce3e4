// Stores a warp's accumulators to D. They go through shared memory, so that whole rows
// are written.
#pragma once

#include <cstdint>

#include "kernels/epilogue/epilogue.cuh"
#include "kernels/grouped/accumulator_tile.h"
#include "kernels/grouped/shared_tile.h"
#include "kernels/grouped/tile_of_d.cuh"

namespace gemm {

// Calls `visit(row, j, low, high)` for each pair of accumulators that a lane holds. They are in the
// warp's row `row` + lane / 4, in column 8 j + lane % 4 * 2 and the next one. See wgmma.cuh.
template <class Product, class Visit>
__device__ __forceinline__ void ForEachPair(const Product& product, const Visit& visit) {
#pragma unroll
  for (int block = 0; block < Product::kRows / 16; ++block) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int j = 0; j < Product::kCols / 8; ++j) {
        const float* pair = &product.accumulators[block][4 * j + 2 * half];
        visit(block * 16 + half * 8, j, pair[0], pair[1]);
      }
    }
  }
}

// Calls `store(load(row, run), i, j)` for those of the warp's runs of kRun elements that
// the tile stores. Runs of a row count from 0. At most kMost runs are loaded at a time.
template <int kRun, int kMost, class Product, class Load, class Store>
__device__ __forceinline__ void ForEachRun(const Product& product, const TileOfD& tile,
                                           unsigned lane, const Load& load, const Store& store) {
  constexpr int kRunsPerRow = Product::kCols / kRun;
  constexpr int kRuns = Product::kRows * kRunsPerRow / 32;  // of a lane
  constexpr int kBatch = kRuns % kMost == 0 ? kMost : kRuns % 2 == 0 && kMost % 2 == 0 ? 2 : 1;
#pragma unroll 1
  for (int batch = 0; batch < kRuns; batch += kBatch) {
    decltype(load(0, 0)) loaded[kBatch];
#pragma unroll
    for (int x = 0; x < kBatch; ++x) {
      const unsigned run = (batch + x) * 32 + lane;
      loaded[x] = load(static_cast<int>(run / kRunsPerRow), static_cast<int>(run % kRunsPerRow));
    }
#pragma unroll
    for (int x = 0; x < kBatch; ++x) {
      const unsigned run = (batch + x) * 32 + lane;
      const int64_t i = tile.rows.begin + product.TileRow(static_cast<int>(run / kRunsPerRow));
      const int64_t j = tile.cols.begin + product.TileCol() + run % kRunsPerRow * kRun;
      if (tile.Stores(i, j)) store(loaded[x], i, j);
    }
  }
}

// Writes the accumulators of a warp to `scratch`, its own part of shared memory.
template <class Product>
__device__ __forceinline__ void WriteAccumulatorTile(const Product& product, std::byte* scratch,
                                                     unsigned lane) {
  constexpr AccumulatorTile kTile{Product::kRows, Product::kCols};
  const int first = kTile.Offset(static_cast<int>(lane / 4), static_cast<int>(lane % 4 / 2)) +
                    static_cast<int>(lane % 2 * 8);
  ForEachPair(product, [&](int row, int j, float low, float high) {
    *reinterpret_cast<float2*>(scratch + kTile.Beside(first, row, 2 * j)) = {low, high};
  });
}

// Stores the elements of the tile from the accumulators in `scratch`, in runs of 16 bytes.
template <class Product, DType kD>
__device__ __forceinline__ void StoreAccumulatorTile(const Product& product,
                                                     const std::byte* scratch,
                                                     const Epilogue<kD>& epilogue,
                                                     const TileOfD& tile, unsigned lane) {
  constexpr AccumulatorTile kTile{Product::kRows, Product::kCols};
  constexpr int kRun = static_cast<int>(kRowAlignment / SizeOf(kD));
  struct Accumulators {
    float of[kRun];
  };
  const auto load = [&](int row, int run) {
    Accumulators accumulators;
#pragma unroll
    for (int quad = 0; quad < kRun / 4; ++quad) {
      const int offset = kTile.Offset(row, run * (kRun / 4) + quad);
      *reinterpret_cast<float4*>(&accumulators.of[4 * quad]) =
          *reinterpret_cast<const float4*>(scratch + offset);
    }
    return accumulators;
  };
  if (kD == DType::kF32 && epilogue.OnlyScales() && tile.n % kRun == 0) {
    ForEachRun<kRun, 4>(product, tile, lane, load,
                        [&](const Accumulators& accumulators, int64_t i, int64_t j) {
                          epilogue.template StoreScaledRun<kRun>(accumulators.of, i, j);
                        });
  } else {
    ForEachRun<kRun, 1>(product, tile, lane, load,
                        [&](const Accumulators& accumulators, int64_t i, int64_t j) {
                          epilogue.template StoreRun<kRun>(accumulators.of, i, j, tile.n);
                        });
  }
}

// Stores 16-bit elements that are alpha times the accumulators. They are rounded on
// their way to shared memory, which halves its traffic.
template <class Product, DType kD>
__device__ __forceinline__ void StoreRounded(const Product& product, std::byte* scratch,
                                             const Epilogue<kD>& epilogue, const TileOfD& tile,
                                             unsigned lane) {
  constexpr SharedTile kTile{Product::kRows, Product::kCols * 2};
  const int first =
      kTile.Offset(static_cast<int>(lane / 4), 0) + static_cast<int>(lane % 4 * sizeof(uint32_t));
  ForEachPair(product, [&](int row, int j, float low, float high) {
    *reinterpret_cast<uint32_t*>(scratch + kTile.Beside(first, row, j)) =
        epilogue.ScaledPair(low, high);
  });
  __syncwarp();
  ForEachRun<kChunkBytes / 2, 4>(
      product, tile, lane,
      [&](int row, int chunk) {
        return *reinterpret_cast<const uint4*>(scratch + kTile.Offset(row, chunk));
      },
      [&](const uint4& bytes, int64_t i, int64_t j) { epilogue.StoreBytes(bytes, i, j); });
}

}  // namespace gemm
