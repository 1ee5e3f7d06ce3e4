// The width of the bands in the banded tile order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gemm/kernel.h"

namespace gemm {

// The launch parameter of kernels with banded tile order.
inline constexpr ParamSpec kBandParams[] = {
    {"swizzle", "stride along n, in elements, of a band of tiles; 0: one band", 0, 65536,
     kOwnChoice}};

// Tile columns of a band, see BandedTile. `swizzle` is the band's width in elements
// along n, 0 for a single band. The kernel's own choice is bands of equal width, of at most 16 tile
// columns. Blocks that run at a time then cover about as many tile rows as columns, and so read the
// fewest operands.
constexpr int BandTiles(int64_t swizzle, int tiles_n, int tile_n) {
  constexpr int kSquareBand = 16;
  if (swizzle == 0) return tiles_n;
  if (swizzle == kOwnChoice) {
    const int bands = (tiles_n + kSquareBand - 1) / kSquareBand;
    return (tiles_n + bands - 1) / bands;
  }
  return static_cast<int>(std::clamp<int64_t>(swizzle / tile_n, 1, tiles_n));
}

}  // namespace gemm
