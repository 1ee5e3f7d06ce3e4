// Tiles that blocks share, and the accumulators that they leave for one another.
#pragma once

#include <cstdint>

#include "kernels/hopper/arguments.h"
#include "kernels/hopper/f32/config.h"
#include "kernels/hopper/f32/stream.h"
#include "kernels/hopper/tile_order.h"
#include "kernels/ptx/grid.cuh"
#include "kernels/ptx/warpgroup.cuh"

namespace gemm {

struct HopperF32StreamArguments : HopperArguments<HopperTileOrder> {
  HopperF32Stream stream;
  // For each block, the accumulators of a tile, and a flag that they are complete.
  float4* partials = nullptr;
  uint32_t* flags = nullptr;
  uint32_t* started = nullptr;  // how many blocks have begun
};

// A block's tiles, with the interface of HopperTiles.
template <class VariantOfTiles>
class HopperF32StreamTiles {
 public:
  using Variant = VariantOfTiles;
  using Arguments = HopperF32StreamArguments;

  __device__ HopperF32StreamTiles(const Arguments& arguments, uint32_t block)
      : arguments_(arguments), block_(static_cast<int>(block)) {}

  // The block's index. Called by one of its threads. If blocks share tiles, they are numbered as
  // they start, in whatever order the GPU starts them. So a block that others wait for is running
  // or has ended.
  __device__ static int TakeIndex(const Arguments& arguments) {
    if (!arguments.stream.shares()) return static_cast<int>(blockIdx.x);
    ptx::AwaitKernelBefore();  // which lowers the flags
    return static_cast<int>(atomicAdd(arguments.started, 1));
  }

  __device__ bool more() const { return piece().tile >= 0; }
  __device__ void Next() { ++turn_; }
  __device__ TileCoord tile() const { return arguments_.order.Tile(piece().tile); }
  __device__ int line_a(const TileCoord& tile) const { return tile.m * kConfig.tile_m; }
  __device__ int line_b(const TileCoord& tile) const { return tile.n * kConfig.tile_n; }
  __device__ int matrix_a() const { return 0; }
  __device__ int matrix_b() const { return 0; }
  __device__ int matrix_d() const { return 0; }
  __device__ int first_k() const { return piece().first_k; }
  __device__ int end_k() const { return piece().end_k; }

  // True if this block completes the tile: it has added the accumulators that others left, and must
  // store the tile. False if it has left its accumulators for the block that does. Called by all
  // threads that multiply; `kBarrier` is theirs.
  template <int kBarrier>
  __device__ __forceinline__ bool Complete(
      float (&accumulators)[VariantOfTiles::kConfig.thread_m][VariantOfTiles::kConfig.thread_n]) {
    if (end_k() < arguments_.stream.k_tiles()) {
      Leave<kBarrier>(accumulators);
      return false;
    }
    const HopperF32Stream& stream = arguments_.stream;
    // Those of blocks that began before this one.
    for (int left = first_k(), block = block_ - 1; left > 0; --block) {
      Add<kBarrier>(accumulators, block);
      left -= stream.BeginOf(block + 1) - stream.BeginOf(block);
    }
    return true;
  }

 private:
  static constexpr HopperF32Config kConfig = Variant::kConfig;

  __device__ HopperF32Piece piece() const { return PieceOf(arguments_.stream, block_, turn_); }
  static constexpr int kQuads = kConfig.thread_n / 4;  // of a row

  // A thread's four accumulators lie beside those of the next thread.
  __device__ float4* QuadOf(int block, int row, int quad) const {
    const int index = (block * kConfig.thread_m + row) * kQuads + quad;
    return arguments_.partials + int64_t{index} * kConfig.consumers() + threadIdx.x;
  }

  template <int kBarrier>
  __device__ void Leave(const float (&accumulators)[kConfig.thread_m][kConfig.thread_n]) const {
#pragma unroll
    for (int row = 0; row < kConfig.thread_m; ++row) {
#pragma unroll
      for (int quad = 0; quad < kQuads; ++quad) {
        const float* const four = &accumulators[row][4 * quad];
        __stcg(QuadOf(block_, row, quad), float4{four[0], four[1], four[2], four[3]});
      }
    }
    __threadfence();
    ptx::AwaitBarrier<kConfig.consumers()>(kBarrier);
    if (threadIdx.x == 0) ptx::RaiseFlag(arguments_.flags + block_);
  }

  template <int kBarrier>
  __device__ void Add(float (&accumulators)[kConfig.thread_m][kConfig.thread_n], int block) const {
    if (threadIdx.x == 0) ptx::AwaitFlag(arguments_.flags + block);
    ptx::AwaitBarrier<kConfig.consumers()>(kBarrier);
#pragma unroll
    for (int row = 0; row < kConfig.thread_m; ++row) {
#pragma unroll
      for (int quad = 0; quad < kQuads; ++quad) {
        const float4 four = __ldcg(QuadOf(block, row, quad));
        float* const sums = &accumulators[row][4 * quad];
        sums[0] += four.x, sums[1] += four.y, sums[2] += four.z, sums[3] += four.w;
      }
    }
  }

  const Arguments& arguments_;
  const int block_;
  int turn_ = 0;
};

template <class Tiles>
inline constexpr bool kStreams = false;
template <class Variant>
inline constexpr bool kStreams<HopperF32StreamTiles<Variant>> = true;

}  // namespace gemm
