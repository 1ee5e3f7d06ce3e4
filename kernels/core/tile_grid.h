// The number of thread blocks of a product.
#pragma once

#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gemm/problem.h"

namespace gemm {

struct TileGrid {
  int tiles_m = 0;
  int tiles_n = 0;

  // All tiles are along one grid dimension: the other two end at 65535 blocks.
  unsigned blocks() const {
    return static_cast<unsigned>(tiles_m) * static_cast<unsigned>(tiles_n);
  }
};

// INVALID_ARGUMENT where there are more tiles than one launch can have blocks.
inline absl::StatusOr<TileGrid> MakeTileGrid(const Problem& problem, int tile_m, int tile_n) {
  constexpr int64_t kMaxTiles = std::numeric_limits<int32_t>::max();
  const int64_t tiles_m = (problem.m + tile_m - 1) / tile_m;
  const int64_t tiles_n = (problem.n + tile_n - 1) / tile_n;
  if (tiles_m > kMaxTiles / tiles_n) {
    return absl::InvalidArgumentError(
        absl::StrCat("m x n is ", problem.m, " x ", problem.n, ", more than ", kMaxTiles,
                     " tiles of ", tile_m, " x ", tile_n, ", the most that one launch takes"));
  }
  return TileGrid{static_cast<int>(tiles_m), static_cast<int>(tiles_n)};
}

}  // namespace gemm
