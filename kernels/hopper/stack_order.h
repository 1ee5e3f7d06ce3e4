// The order in which blocks take the tiles of a stack. Its products each have their own rows of a
// common A and a common D (GroupedBy::kM).
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "kernels/core/divisor.h"
#include "kernels/core/tile_order.h"
#include "kernels/numeric/host_device.h"

namespace gemm {

// One product after another, each in groups of tile rows that run column by column, as GroupedTile
// (tile_order.h) orders them. So blocks that run at a time share tiles of B. Leftover tile rows
// make the last group of a product higher. A group of their own would read all of B for a few rows.
//
// Lies in a kernel's arguments: with kMostProducts products, these take about 4 KiB.
class HopperStackOrder {
 public:
  static constexpr int kMostProducts = 512;

  HopperStackOrder() = default;

  // `extents`: the rows of each product, at least 0, for at most kMostProducts. The first one is
  // product `product` and starts at row `row`. All have `columns` columns of tiles of `tile_rows`
  // rows, in groups of `group` rows of tiles. All tiles, and the last row, are below 2^30.
  HopperStackOrder(absl::Span<const int64_t> extents, int64_t row, int product, int tile_rows,
                   int columns, int group)
      : first_product_(product),
        products_(static_cast<int>(extents.size())),
        columns_(columns),
        tile_rows_(tile_rows),
        group_(group),
        of_group_(group * columns) {
    int64_t tile = 0;
    for (int i = 0; i < products_; ++i) {
      begins_[i] = {static_cast<int>(tile), static_cast<int>(row)};
      row += extents[static_cast<size_t>(i)];
      tile += int64_t{TileRows(static_cast<int>(extents[static_cast<size_t>(i)]))} * columns;
    }
    begins_[products_] = {static_cast<int>(tile), static_cast<int>(row)};
  }

  GEMM_HOST_DEVICE constexpr int tiles() const { return begins_[products_].tile; }

  // The place of tile `index`'s product in this stack. `from`: that of an earlier tile's product.
  // Searches in steps that double and then halve: a block's next tile is mostly of a near product,
  // but there may be many products without rows between.
  GEMM_HOST_DEVICE constexpr int PlaceOf(int index, int from) const {
    int step = 1;
    for (; from + step < products_ && begins_[from + step].tile <= index; step *= 2) from += step;
    for (; step > 0; step /= 2) {
      if (from + step < products_ && begins_[from + step].tile <= index) from += step;
    }
    return from;
  }

  // The product at `place`, and the begin and the end of its rows.
  GEMM_HOST_DEVICE constexpr int Product(int place) const { return first_product_ + place; }
  GEMM_HOST_DEVICE constexpr int FirstRow(int place) const { return begins_[place].row; }
  GEMM_HOST_DEVICE constexpr int EndRow(int place) const { return begins_[place + 1].row; }

  // Row and column, in tiles of the product at `place`, of tile `index`.
  GEMM_HOST_DEVICE constexpr TileCoord Tile(int index, int place) const {
    const int of_product = index - begins_[place].tile;
    const int rows = TileRows(EndRow(place) - FirstRow(place));
    const int whole = group_.Quotient(rows), groups = whole > 1 ? whole : 1;
    const int begun = of_group_.Quotient(of_product);
    const int group = begun < groups ? begun : groups - 1;
    const int first = group * group_.value();
    const int height = group == groups - 1 ? rows - first : group_.value();
    const int of_group = of_product - first * columns_;
    const int column = of_group / height;
    return {first + of_group - column * height, column};
  }

 private:
  // A product's first tile, and its first row of D.
  struct alignas(8) Begin {
    int tile;
    int row;
  };

  GEMM_HOST_DEVICE constexpr int TileRows(int rows) const {
    return tile_rows_.Quotient(rows + tile_rows_.value() - 1);
  }

  int first_product_ = 0;
  int products_ = 0;
  int columns_ = 1;
  Divisor tile_rows_, group_, of_group_;
  Begin begins_[kMostProducts + 1] = {};  // and the end of the last one
};

}  // namespace gemm
