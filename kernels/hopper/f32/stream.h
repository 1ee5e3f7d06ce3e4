// The tiles, and the parts of tiles, that a block computes if blocks share the last ones.
//
// Tiles are computed in rounds of a tile for each block, but the last round is rarely full. So the
// tiles of the last two rounds, or of the only one, are laid end to end along k. They are cut into
// as many equal shares as there are blocks (Osama et al., "Stream-K: Work-Centric Parallel
// Decomposition for Dense Matrix-Matrix Multiplication on the GPU", PPoPP 2023).
//
// A block goes through its share from the end to the begin. It starts with a tile that the share's
// end cuts, and leaves that tile's accumulators in memory. It ends with a tile whose begin others
// compute. They do that first, so the block adds the accumulators that they left.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/core/divisor.h"
#include "kernels/numeric/host_device.h"

namespace gemm {

class HopperF32Stream {
 public:
  HopperF32Stream() = default;

  // For at most `running` blocks. A tile has `k_tiles` along k.
  constexpr HopperF32Stream(int tiles, int running, int k_tiles)
      : tiles_(tiles), blocks_(Blocks(tiles, running, k_tiles)), k_tiles_(k_tiles) {
    const int rounds = tiles / blocks_;
    const int whole = (rounds > 1 ? rounds - 1 : 0) * blocks_;
    const int64_t units = int64_t{tiles - whole} * k_tiles;
    const bool shares = tiles % blocks_ != 0 && units <= std::numeric_limits<int32_t>::max();
    whole_ = shares ? whole : tiles;
    share_ = shares ? static_cast<int>(units) / blocks_ : 0;
    rounds_ = whole / blocks_;
    longer_ = shares ? static_cast<int>(units) % blocks_ : 0;
  }

  // Blocks of the grid.
  GEMM_HOST_DEVICE constexpr int blocks() const { return blocks_; }
  // Whether some tiles are shared.
  GEMM_HOST_DEVICE constexpr bool shares() const { return whole_ < tiles_; }
  // The number of first tiles, which no blocks share.
  GEMM_HOST_DEVICE constexpr int whole() const { return whole_; }
  // Turns of a block before its share, if tiles are shared.
  GEMM_HOST_DEVICE constexpr int rounds() const { return rounds_; }
  GEMM_HOST_DEVICE constexpr int k_tiles() const { return k_tiles_.value(); }

  // The begin of a block's share, in k-tiles of the other tiles laid end to end.
  GEMM_HOST_DEVICE constexpr int BeginOf(int block) const {
    return share_ * block + (block < longer_ ? block : longer_);
  }
  // The tile of such a k-tile, counted from the first shared one.
  GEMM_HOST_DEVICE constexpr int TileOf(int k_tile) const { return k_tiles_.Quotient(k_tile); }

 private:
  // The fewest k-tiles of a share, if there are fewer tiles than blocks.
  static constexpr int kLeastShare = 8;

  static constexpr int Blocks(int tiles, int running, int k_tiles) {
    const int64_t shares = int64_t{tiles} * k_tiles / kLeastShare;
    const int64_t most = shares > tiles ? shares : tiles;
    return most < running ? static_cast<int>(most) : running;
  }

  int tiles_ = 0;
  int blocks_ = 1;
  Divisor k_tiles_;
  int whole_ = 0;
  int rounds_ = 0;
  int share_ = 0;
  int longer_ = 0;  // this many of the first blocks have one k-tile more
};

// A tile of D, or a part of one along k, in tiles of k.
struct HopperF32Piece {
  int tile = -1;  // none
  int first_k = 0;
  int end_k = 0;
};

// The piece that a block computes in its turn `turn`. It follows from the turn alone: a cursor
// would hold more registers in addition to the accumulators.
GEMM_HOST_DEVICE constexpr HopperF32Piece PieceOf(const HopperF32Stream& stream, int block,
                                                  int turn) {
  const int whole = turn * stream.blocks() + block;
  if (whole < stream.whole()) return {whole, 0, stream.k_tiles()};
  const int begin = stream.BeginOf(block), end = stream.BeginOf(block + 1);
  if (begin == end) return {};
  const int tile = stream.TileOf(end - 1) - (turn - stream.rounds());
  const int tile_begin = tile * stream.k_tiles(), tile_end = tile_begin + stream.k_tiles();
  if (tile_end <= begin) return {};
  return {stream.whole() + tile, begin > tile_begin ? begin - tile_begin : 0,
          (end < tile_end ? end : tile_end) - tile_begin};
}

}  // namespace gemm
