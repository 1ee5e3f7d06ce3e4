// The thread-tiled kernel: a block computes a tile of D from k-tiles of A and B in shared
// memory. A thread computes a part of it, by outer products of strips in registers.
#pragma once

#include <cstdint>

#include "kernels/core/tile_order.h"
#include "kernels/epilogue/epilogue.cuh"
#include "kernels/ptx/grid.cuh"
#include "kernels/simt/tiled_copy.cuh"

namespace gemm {

template <class Variant>
using TiledAccumulators =
    Accumulators<typename Variant::Element, Variant::kLayout.config.thread_m,
                 Variant::kLayout.config.thread_n, Variant::kLayout.config.packed>;

// Reads a k-tile from shared memory and multiplies it, step by step along k.
template <class Variant>
class KTileProduct {
 public:
  using Element = typename Variant::Element;
  using KTile = SharedKTile<Variant>;
  static constexpr TiledLayout kLayout = Variant::kLayout;
  static constexpr TiledConfig kConfig = kLayout.config;
  // For device code, where kLayout has no address.
  static GEMM_HOST_DEVICE constexpr TiledLayout Layout() {
    constexpr TiledLayout kCopy = Variant::kLayout;
    return kCopy;
  }

  explicit __device__ KTileProduct(TilePosition origin) : origin_(origin) {}

  // Multiplies a k-tile.
  __device__ void Add(const KTile& k_tile, TiledAccumulators<Variant>& accumulators) const {
    if constexpr (kConfig.transposes_a()) {
#pragma unroll
      for (int k = 0; k < kConfig.block_k; ++k) {
        Fragments fragments;
        Load(k_tile, k, fragments);
        Multiply(fragments, accumulators);
      }
    } else {
#pragma unroll kDeepUnroll
      for (int k = 0; k < kConfig.block_k; k += kDeep) AddDeep(k_tile, k, accumulators);
    }
  }

  // One step's strips of A, transposed, and of B.
  struct Fragments {
    Strip<Element, kLayout.run_m()> a[kConfig.thread_m / kLayout.run_m()];
    Strip<Element, kLayout.run_n()> b[kConfig.thread_n / kLayout.run_n()];
  };

  __device__ void Load(const KTile& k_tile, int k, Fragments& fragments) const {
#pragma unroll
    for (int run = 0; run < kRunsM; ++run) {
      fragments.a[run].Load(k_tile.a + Layout().AOffset(origin_.row, 0) +
                            Layout().AOffset(Layout().RowStep(run * kLayout.run_m()), k));
    }
    LoadB(k_tile, k, fragments.b);
  }

  static __device__ void Multiply(const Fragments& fragments,
                                  TiledAccumulators<Variant>& accumulators) {
#pragma unroll
    for (int i = 0; i < kConfig.thread_m; ++i) {
#pragma unroll
      for (int run = 0; run < kRunsN; ++run) {
        accumulators.Add(i, fragments.a[i / kLayout.run_m()], i % kLayout.run_m(), fragments.b[run],
                         run * kLayout.run_n());
      }
    }
  }

 private:
  static constexpr int kRunsM = kConfig.thread_m / kLayout.run_m();
  static constexpr int kRunsN = kConfig.thread_n / kLayout.run_n();
  // Steps along k of a 16-byte load from a k-tile of A that is m x k. The plain kernels
  // multiply each load before the next: beside the accumulators there are registers for
  // only one.
  static constexpr int kDeep = kConfig.widest();
  static constexpr int kDeepUnroll = kConfig.conflict_free ? kConfig.block_k / kDeep : 1;

  template <int kCount>
  __device__ void LoadB(const KTile& k_tile, int k,
                        Strip<Element, kLayout.run_n()> (&b)[kCount]) const {
#pragma unroll
    for (int run = 0; run < kCount; ++run) {
      b[run].Load(k_tile.b + Layout().BOffset(0, origin_.col) +
                  Layout().BOffset(k, Layout().ColStep(run * kLayout.run_n())));
    }
  }

  // kDeep steps, from a k-tile of A that is m x k.
  __device__ void AddDeep(const KTile& k_tile, int k,
                          TiledAccumulators<Variant>& accumulators) const {
    Strip<Element, kDeep> a[kConfig.thread_m];
#pragma unroll
    for (int i = 0; i < kConfig.thread_m; ++i) {
      a[i].Load(k_tile.a + Layout().AOffset(origin_.row, 0) +
                Layout().AOffset(Layout().RowStep(i), k));
    }
#pragma unroll
    for (int x = 0; x < kDeep; ++x) {
      Strip<Element, kLayout.run_n()> b[kRunsN];
      LoadB(k_tile, k + x, b);
#pragma unroll
      for (int i = 0; i < kConfig.thread_m; ++i) {
#pragma unroll
        for (int run = 0; run < kRunsN; ++run) {
          accumulators.Add(i, a[i], x, b[run], run * kLayout.run_n());
        }
      }
    }
  }

  const TilePosition origin_;
};

// ---- The loops over `count` k-tiles. The last one has `tail` (1 to block_k) elements
// inside k. ----

// One buffer: all threads fill it, then all read it.
template <class Variant>
__device__ void OneBuffer(KTileCopy<Variant>& copy, const KTileProduct<Variant>& product,
                          SharedKTile<Variant> (&k_tiles)[1], uint32_t count, int tail,
                          TiledAccumulators<Variant>& accumulators) {
  copy.StartLast(count - 1, tail, k_tiles[0]);
  copy.Finish(k_tiles[0]);
  __syncthreads();
  for (uint32_t left = count - 1;; --left) {
    product.Add(k_tiles[0], accumulators);
    if (left == 0) break;
    __syncthreads();
    copy.StartNext(k_tiles[0]);
    copy.Finish(k_tiles[0]);
    __syncthreads();
  }
}

// Two buffers: the next k-tile is copied while one is multiplied. There is one barrier for each
// k-tile. After it the next k-tile is complete, and this one is free.
template <class Variant>
__device__ void TwoBuffers(KTileCopy<Variant>& copy, const KTileProduct<Variant>& product,
                           SharedKTile<Variant> (&k_tiles)[2], uint32_t count, int tail,
                           TiledAccumulators<Variant>& accumulators) {
  copy.StartLast(count - 1, tail, k_tiles[0]);
  copy.Finish(k_tiles[0]);
  __syncthreads();
  int now = 0;
  for (uint32_t left = count - 1;; --left, now ^= 1) {
    if (left > 0) copy.StartNext(k_tiles[now ^ 1]);
    product.Add(k_tiles[now], accumulators);
    if (left == 0) break;
    copy.Finish(k_tiles[now ^ 1]);
    __syncthreads();
  }
}

// The same, and each step's fragments are read while the step before is multiplied, also
// across the barrier.
template <class Variant>
__device__ void TwoBuffersPrefetched(KTileCopy<Variant>& copy, const KTileProduct<Variant>& product,
                                     SharedKTile<Variant> (&k_tiles)[2], uint32_t count, int tail,
                                     TiledAccumulators<Variant>& accumulators) {
  constexpr TiledConfig kConfig = Variant::kLayout.config;
  static_assert(kConfig.block_k % 2 == 0, "a k-tile starts with the first of the two fragments");
  typename KTileProduct<Variant>::Fragments fragments[2];
  copy.StartLast(count - 1, tail, k_tiles[0]);
  copy.Finish(k_tiles[0]);
  __syncthreads();
  product.Load(k_tiles[0], 0, fragments[0]);
  int now = 0;
  for (uint32_t left = count; left > 0; --left, now ^= 1) {
    if (left > 1) copy.StartNext(k_tiles[now ^ 1]);
#pragma unroll
    for (int k = 0; k < kConfig.block_k; ++k) {
      if (k + 1 < kConfig.block_k) {
        product.Load(k_tiles[now], k + 1, fragments[(k + 1) % 2]);
      } else {
        // After the last k-tile nothing reads these stores: a branch would cost registers.
        copy.Finish(k_tiles[now ^ 1]);
        __syncthreads();
        product.Load(k_tiles[now ^ 1], 0, fragments[0]);
      }
      product.Multiply(fragments[k % 2], accumulators);
    }
  }
}

// `Variant` has a constexpr TiledLayout kLayout and the Element type.
template <class Variant>
__global__ __launch_bounds__(
    Variant::kLayout.config.threads(),
    Variant::kLayout.config
        .blocks_per_sm()) void TiledKernel(const TiledOperands<typename Variant::Element> operands,
                                           const Epilogue<Variant::kLayout.config.type> epilogue,
                                           int tiles_m, int tiles_n, int band) {
  constexpr TiledLayout kLayout = Variant::kLayout;
  constexpr TiledConfig kConfig = kLayout.config;
  __shared__ SharedKTile<Variant> k_tiles[kConfig.buffers];

  const TileCoord tile = BandedTile(static_cast<int>(blockIdx.x), tiles_m, tiles_n, band);
  KTileCopy<Variant> copy(operands, int64_t{tile.m} * kConfig.block_m,
                          int64_t{tile.n} * kConfig.block_n);
  const KTileProduct<Variant> product(kLayout.ThreadOrigin(threadIdx.x));
  TiledAccumulators<Variant> accumulators;

  // No device has memory for more k-tiles than 32 bits count.
  const auto count = static_cast<uint32_t>((operands.k + kConfig.block_k - 1) / kConfig.block_k);
  const int tail = static_cast<int>(operands.k - int64_t{count - 1} * kConfig.block_k);
  if constexpr (kConfig.buffers == 1) {
    OneBuffer<Variant>(copy, product, k_tiles, count, tail, accumulators);
  } else if constexpr (kConfig.prefetch) {
    TwoBuffersPrefetched<Variant>(copy, product, k_tiles, count, tail, accumulators);
  } else {
    TwoBuffers<Variant>(copy, product, k_tiles, count, tail, accumulators);
  }

  const TileCoord same_tile =
      BandedTile(static_cast<int>(ptx::BlockAnew()), tiles_m, tiles_n, band);
  const int64_t first_m = int64_t{same_tile.m} * kConfig.block_m;
  const int64_t first_n = int64_t{same_tile.n} * kConfig.block_n;
  const TilePosition origin = kLayout.ThreadOrigin(ptx::ThreadAnew());
  constexpr int kRun = TiledLayout::Min(kLayout.run_n(), kConfig.widest());
#pragma unroll
  for (int i = 0; i < kConfig.thread_m; ++i) {
    const int64_t row = first_m + origin.row + kLayout.RowStep(i);
    if (row >= operands.m) continue;
#pragma unroll
    for (int j = 0; j < kConfig.thread_n; j += kRun) {
      float run[kRun];
#pragma unroll
      for (int x = 0; x < kRun; ++x) run[x] = accumulators.At(i, j + x);
      epilogue.template StoreRun<kRun>(run, row, first_n + origin.col + kLayout.ColStep(j),
                                       operands.n);
    }
  }
}

}  // namespace gemm
