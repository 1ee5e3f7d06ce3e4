// The order in which clusters take the tiles of a batch of products.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/core/divisor.h"
#include "kernels/core/tile_order.h"

namespace gemm {

// Takes one product after the other, each as GroupedTile (tile_order.h) orders it. Counts in
// clusters of tiles.
class HopperTileOrder {
 public:
  HopperTileOrder() = default;

  // Groups have `group` rows, 1 to clusters_m, of a product's clusters_m x clusters_n clusters. All
  // products together have fewer than 2^31 clusters.
  constexpr HopperTileOrder(int clusters_m, int clusters_n, int group, int products)
      : clusters_(clusters_m * clusters_n * products),
        clusters_m_(clusters_m),
        of_product_(clusters_m * clusters_n),
        of_group_(group * clusters_n),
        rows_(group),
        last_rows_(clusters_m - (clusters_m - 1) / group * group) {}

  GEMM_HOST_DEVICE constexpr int clusters() const { return clusters_; }

  GEMM_HOST_DEVICE constexpr int Product(int index) const { return of_product_.Quotient(index); }

  GEMM_HOST_DEVICE constexpr TileCoord Tile(int index) const {
    const int of_product = index - Product(index) * of_product_.value();
    const int group = of_group_.Quotient(of_product);
    const int of_group = of_product - group * of_group_.value();
    const int first = group * rows_.value();
    const bool last = clusters_m_ - first < rows_.value();
    const int column = last ? last_rows_.Quotient(of_group) : rows_.Quotient(of_group);
    const int rows = last ? last_rows_.value() : rows_.value();
    return {first + of_group - column * rows, column};
  }

 private:
  int clusters_ = 0;
  int clusters_m_ = 0;
  Divisor of_product_, of_group_, rows_, last_rows_;
};

// Rows of tiles in a group (GroupedTile), for tiles of `rows` x `columns`. The `running` tiles that
// run at a time then cover about as many rows of D as columns, and so read the fewest operands.
inline int SquareGroup(double rows, double columns, int running) {
  return std::max(1, static_cast<int>(std::lround(std::sqrt(running * columns / rows))));
}

// The default: rows of clusters in a group, of `clusters_m` in all, if `running` clusters run at a
// time. Groups are of equal height. `config`: HopperConfig or HopperF32Config.
template <class Config>
int HopperGroup(const Config& config, int clusters_m, int running) {
  const int square =
      SquareGroup(config.tile_m * config.cluster_m, config.tile_n * config.cluster_n, running);
  const int groups = (clusters_m + square - 1) / square;
  return (clusters_m + groups - 1) / groups;
}

}  // namespace gemm
