// The layout of a warp's accumulators in shared memory, through which they go from
// registers to whole rows of D. The unit is a quad: four neighbours of a row.
#pragma once

#include "kernels/numeric/host_device.h"

namespace gemm {

// `rows` rows of `cols` accumulators in f32; `cols` is a multiple of 32.
struct AccumulatorTile {
  int rows;
  int cols;

  GEMM_HOST_DEVICE constexpr int bytes() const { return rows * cols * 4; }

  // The byte offset of a quad. The swizzle within a line of eight quads leaves none of
  // these accesses a bank conflict:
  // - half a warp writes pairs of accumulators: four rows by eight neighbours;
  // - a quarter of a warp reads eight neighbouring quads of a row;
  // - a quarter of a warp reads every other quad of a row, or of two rows where a row
  //   is one line.
  GEMM_HOST_DEVICE constexpr int Offset(int row, int quad) const {
    const int low = (quad >> 1 ^ row) & 3;
    const int high = (quad ^ quad >> 3 ^ row) & 1;
    return (row * (cols / 4) + (quad & ~7) + (high << 2 | low)) * 16;
  }

  // The offset of the byte that is `rows_on` rows and `quads_on` quads further than the one at
  // `offset`. `rows_on` is a multiple of 8, `quads_on` of 2. `offset` is in one of the first eight
  // rows and of the first two quads. Eight offsets of a row are an XOR away, the rest a constant
  // from those.
  GEMM_HOST_DEVICE constexpr int Beside(int offset, int rows_on, int quads_on) const {
    constexpr int kLineBytes = 8 * 16;
    const int on = Offset(0, quads_on);
    return (offset ^ on % kLineBytes) + on / kLineBytes * kLineBytes + Offset(rows_on, 0);
  }
};

}  // namespace gemm
