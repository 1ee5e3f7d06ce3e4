// Which tiles of a stack of products a block computes, in which order.
#pragma once

#include <cstdint>

#include "kernels/hopper/arguments.h"
#include "kernels/hopper/config.h"
#include "kernels/hopper/stack_order.h"

namespace gemm {

// HopperTiles (schedule.cuh) of a group by m. Blocks are alone: there are no clusters.
//
// A tile's rows beyond its product are loaded, but not stored. They are the next product's, or
// zeros.
template <class VariantOfTiles>
class HopperStackedTiles {
 public:
  using Variant = VariantOfTiles;
  using Arguments = HopperArguments<HopperStackOrder>;
  static constexpr bool kStacked = true;

  __device__ HopperStackedTiles(const Arguments& arguments, uint32_t /*block_of_cluster*/)
      : arguments_(arguments),
        index_(static_cast<int>(blockIdx.x)),
        place_(arguments.order.PlaceOf(index_, 0)) {}

  __device__ bool more() const { return index_ < arguments_.order.tiles(); }
  __device__ void Next() {
    index_ += static_cast<int>(gridDim.x);
    place_ = arguments_.order.PlaceOf(index_, place_);
  }

  __device__ int product() const { return arguments_.order.Product(place_); }

  // The tile, in tiles of the product.
  __device__ TileCoord tile() const {
    const TileCoord of_d = arguments_.order.Tile(index_, place_);
    return kConfig.swap ? TileCoord{of_d.n, of_d.m} : of_d;
  }

  __device__ int line_a(const TileCoord& tile) const {
    return tile.m * kConfig.tile_m + (kConfig.swap ? 0 : first_row());
  }
  __device__ int line_b(const TileCoord& tile) const {
    return tile.n * kConfig.tile_n + (kConfig.swap ? first_row() : 0);
  }

  __device__ int matrix_a() const { return product() * arguments_.step_a; }
  __device__ int matrix_b() const { return product() * arguments_.step_b; }
  __device__ int matrix_d() const { return 0; }

  __device__ int end_row() const { return arguments_.order.EndRow(place_); }

  __device__ int sharer() const { return 0; }
  __device__ int part() const { return 0; }
  __device__ int first_k() const { return 0; }
  __device__ int end_k() const { return arguments_.k_tiles; }

 private:
  static constexpr HopperConfig kConfig = Variant::kConfig;

  __device__ int first_row() const { return arguments_.order.FirstRow(place_); }

  const Arguments& arguments_;
  int index_;
  int place_;  // of its product in the stack
};

}  // namespace gemm
