// Which tiles a block computes, in which order.
#pragma once

#include <cstdint>

#include "kernels/hopper/arguments.h"
#include "kernels/hopper/tile_order.h"

namespace gemm {

// A block's tiles. Clusters take tiles in L2-grouped order. A cluster's next tile is as many tiles
// ahead as the grid has clusters.
template <class VariantOfTiles>
class HopperTiles {
 public:
  using Variant = VariantOfTiles;
  using Arguments = HopperArguments<HopperTileOrder>;
  // Whether products are stacked, so that a tile may reach into the next product's rows.
  static constexpr bool kStacked = false;

  __device__ HopperTiles(const Arguments& arguments, uint32_t block_of_cluster)
      : arguments_(arguments),
        sharer_(static_cast<int>(block_of_cluster) % kConfig.sharers()),
        part_(static_cast<int>(block_of_cluster) / kConfig.sharers()),
        index_(static_cast<int>(blockIdx.x) / kConfig.cluster()) {}

  __device__ bool more() const { return index_ < arguments_.order.clusters(); }
  __device__ void Next() { index_ += static_cast<int>(gridDim.x) / kConfig.cluster(); }

  // The product of the batch.
  __device__ int product() const { return arguments_.order.Product(index_); }

  // The tile's row and column, in tiles.
  __device__ TileCoord tile() const {
    TileCoord tile = arguments_.order.Tile(index_);
    tile.m = tile.m * kConfig.cluster_m + (kConfig.cluster_m > 1 ? sharer_ : 0);
    tile.n = tile.n * kConfig.cluster_n + (kConfig.cluster_n > 1 ? sharer_ : 0);
    return tile;
  }

  // The first line of op(A) and of op(B) that the tile needs.
  __device__ int line_a(const TileCoord& tile) const { return tile.m * kConfig.tile_m; }
  __device__ int line_b(const TileCoord& tile) const { return tile.n * kConfig.tile_n; }

  // Which of the matrices of an operand, and which D.
  __device__ int matrix_a() const { return product() * arguments_.step_a; }
  __device__ int matrix_b() const { return product() * arguments_.step_b; }
  __device__ int matrix_d() const { return product(); }

  // The product's rows of D end here.
  __device__ int end_row() const { return arguments_.m; }

  // The block's index among those that load a tile together, and among those that share k.
  __device__ int sharer() const { return sharer_; }
  __device__ int part() const { return part_; }

  // Its part of k, in tiles of k.
  __device__ int first_k() const { return kConfig.split > 1 ? BeginOf(part_) : 0; }
  __device__ int end_k() const {
    return kConfig.split > 1 ? BeginOf(part_ + 1) : arguments_.k_tiles;
  }

 private:
  static constexpr auto kConfig = Variant::kConfig;

  __device__ int BeginOf(int part) const {
    return static_cast<int>(int64_t{arguments_.k_tiles} * part / kConfig.split);
  }

  const Arguments& arguments_;
  const int sharer_;
  const int part_;
  int index_;
};

}  // namespace gemm
