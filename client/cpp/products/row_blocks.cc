#include "client/cpp/products/row_blocks.h"

#include <algorithm>

namespace gemmd::client {

std::vector<RowBlock> PlanRowBlocks(int64_t rows, int64_t blocks) {
  const int64_t tiles = (rows - 1) / kRowsOfATile + 1;
  const int64_t count = std::min(blocks, tiles);
  std::vector<RowBlock> plan;
  plan.reserve(static_cast<size_t>(count));
  int64_t first = 0;
  for (int64_t i = 0; i < count; ++i) {
    // The larger ones go first: the last result is then the sooner there.
    const int64_t whole = tiles / count + (i < tiles % count ? 1 : 0);
    const int64_t block_rows = std::min(whole * kRowsOfATile, rows - first);
    plan.push_back({.first = first, .rows = block_rows});
    first += block_rows;
  }
  return plan;
}

}  // namespace gemmd::client
