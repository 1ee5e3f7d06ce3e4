// The part of D that a thread block computes.
#pragma once

#include <cstdint>

#include "kernels/core/tile_order.h"

namespace gemm {

// The span of a tile along the m or n of D. A tile that would reach beyond the edge is
// moved back, so that its copies need no bounds. Its neighbour stores the elements that
// both compute.
struct TileSpan {
  int64_t begin;   // of the computed elements
  int64_t stored;  // begin of the stored elements

  // Tile `index` of `size`, along an edge of `length`; moved only if `may_move`.
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

  // Columns begin at a chunk of 16 bytes, also for 16-bit elements.
  __device__ TileOfD(const TileCoord& tile, int tile_m, int tile_n, int64_t m, int64_t n)
      : m(m), n(n), rows(tile.m, tile_m, m, true), cols(tile.n, tile_n, n, n % 8 == 0) {}

  __device__ bool Stores(int64_t i, int64_t j) const {
    return i >= rows.stored && i < m && j >= cols.stored && j < n;
  }
};

}  // namespace gemm
