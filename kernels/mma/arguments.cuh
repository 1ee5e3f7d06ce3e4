// The arguments of an mma.sync kernel.
#pragma once

#include <cstdint>

#include "kernels/core/tile_order.h"
#include "kernels/epilogue/epilogue.cuh"

namespace gemm::mma {

// A stored f16 matrix. k is along its rows (A, and B stored n x k) or along its columns
// (B stored k x n).
struct StoredOperand {
  const std::byte* data;
  int64_t pitch;  // bytes
};

// Block x computes tiles x, x + grid, x + 2 grid and so on.
struct Arguments {
  StoredOperand a;  // m x k
  StoredOperand b;  // k x n, or n x k
  Epilogue<DType::kF16> epilogue;
  int64_t m;
  int64_t n;
  int64_t k;
  int tiles_m;
  int tiles_n;
  int band;  // tile columns of a band, see BandedTile

  __device__ unsigned tiles() const {
    return static_cast<unsigned>(tiles_m) * static_cast<unsigned>(tiles_n);
  }
};

// The first element of a tile of D.
struct TileOrigin {
  int64_t i;
  int64_t j;
};

template <class Variant>
__device__ __forceinline__ TileOrigin OriginOf(unsigned tile, const Arguments& args) {
  const TileCoord at = BandedTile(static_cast<int>(tile), args.tiles_m, args.tiles_n, args.band);
  return {static_cast<int64_t>(at.m) * Variant::kConfig.tile_m(),
          static_cast<int64_t>(at.n) * Variant::kConfig.tile_n()};
}

}  // namespace gemm::mma
