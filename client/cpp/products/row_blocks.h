// How a product is split into blocks of rows.
#pragma once

#include <cstdint>
#include <vector>

namespace gemmd::client {

// Rows [first, first + rows) of A, of C and of D.
struct RowBlock {
  int64_t first = 0;
  int64_t rows = 0;

  friend bool operator==(const RowBlock&, const RowBlock&) = default;
};

// Tiles of kernels are of this many rows or of a divisor, mostly: a block of whole tiles computes
// nothing in vain.
inline constexpr int64_t kRowsOfATile = 128;

// At most `blocks` blocks, in order, without gaps, as equal as whole tiles allow. All but the last
// consist of whole tiles. rows and blocks are at least 1.
std::vector<RowBlock> PlanRowBlocks(int64_t rows, int64_t blocks);

}  // namespace gemmd::client
