// The default of the Hopper kernels' tile order.
#pragma once

#include <algorithm>
#include <cmath>

namespace gemm {

// Rows of tiles of `rows` x `columns` in a group (GroupedTile), where `running` tiles run at a
// time: together they then cover about as many rows of D as columns, and read the fewest operands.
inline int SquareGroup(double rows, double columns, int running) {
  return std::max(1, static_cast<int>(std::lround(std::sqrt(running * columns / rows))));
}

// Rows of clusters in a group, of `clusters_m` in all, where `running` clusters run at a time.
// Groups are of equal height. `config`: HopperConfig or HopperF32Config.
template <class Config>
int HopperGroup(const Config& config, int clusters_m, int running) {
  const int square =
      SquareGroup(config.tile_m * config.cluster_m, config.tile_n * config.cluster_n, running);
  const int groups = (clusters_m + square - 1) / square;
  return (clusters_m + groups - 1) / groups;
}

}  // namespace gemm
