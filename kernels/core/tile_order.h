// The order in which thread blocks take the tiles of D. Blocks start roughly in the
// order of their index, so tiles that are neighbours in the order share operands in
// the L2.
#pragma once

#include "kernels/numeric/host_device.h"

namespace gemm {

struct TileCoord {
  int m;
  int n;

  friend constexpr bool operator==(const TileCoord& x, const TileCoord& y) {
    return x.m == y.m && x.n == y.n;
  }
};

// Banded order: bands of `band` tile columns, one after the other, each row by row.
// The last band may be narrower. band == tiles_n is the plain order, row by row.
GEMM_HOST_DEVICE constexpr TileCoord BandedTile(int index, int tiles_m, int tiles_n, int band) {
  const int first = index / (band * tiles_m) * band;
  const int width = band < tiles_n - first ? band : tiles_n - first;
  const int local = index - first * tiles_m;
  return {local / width, first + local % width};
}

// L2-grouped tile order: groups of `group` tile rows, one after the other, each column
// by column. The last group may be lower.
GEMM_HOST_DEVICE constexpr TileCoord GroupedTile(int index, int tiles_m, int tiles_n, int group) {
  const TileCoord transposed = BandedTile(index, tiles_n, tiles_m, group);
  return {transposed.n, transposed.m};
}

}  // namespace gemm
