// The part of D that a thread block computes.
#pragma once

#include <cstdint>

#include "kernels/core/tile_order.h"

namespace gemm {

// Where a tile of `size` lies along the m or n of D. One that would reach beyond
// the edge is moved back, so that all of it is there to be copied as most tiles
// are, and leaves to its neighbour to store what both have.
struct TileSpan {
  int64_t begin;   // of what is computed
  int64_t stored;  // what is stored begins here

  // Tile number `index` of an edge of `length`, moved only if it may be.
  __device__ TileSpan(int index, int size, int64_t length, bool may_move)
      : begin(int64_t{index} * size), stored(begin) {
    if (may_move && length >= size && begin + size > length) begin = length - size;
  }
};

struct TileOfD {
  int64_t m;
  int64_t n;
  TileSpan rows;
  TileSpan cols;

  // Columns begin where a chunk of 16 bytes does, of elements of 16 bits, too.
  __device__ TileOfD(const TileCoord& tile, int tile_m, int tile_n, int64_t m, int64_t n)
      : m(m), n(n), rows(tile.m, tile_m, m, true), cols(tile.n, tile_n, n, n % 8 == 0) {}

  __device__ bool Stores(int64_t i, int64_t j) const {
    return i >= rows.stored && i < m && j >= cols.stored && j < n;
  }
};

}  // namespace gemm
