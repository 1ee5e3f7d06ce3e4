// Where a warp's accumulators lie in shared memory on their way from the registers of
// the product to whole rows of D. Counted in quads: four neighbours of a row.
#pragma once

#include "kernels/numeric/host_device.h"

namespace gemm {

// Rows of `cols` accumulators, a multiple of 32, in f32.
struct AccumulatorTile {
  int rows;
  int cols;

  GEMM_HOST_DEVICE constexpr int bytes() const { return rows * cols * 4; }

  // The byte offset of quad `quad` of a row. The place in a line of eight quads
  // is such that none of these meets a bank twice:
  // - half a warp writing pairs of accumulators: four rows by eight neighbours;
  // - a quarter reading whole quads: eight in a row;
  // - a quarter reading every other quad of a row (of two, where a row is one
  //   line).
  GEMM_HOST_DEVICE constexpr int Offset(int row, int quad) const {
    const int low = (quad >> 1 ^ row) & 3;
    const int high = (quad ^ quad >> 3 ^ row) & 1;
    return (row * (cols / 4) + (quad & ~7) + (high << 2 | low)) * 16;
  }

  // The byte `rows_on` rows and `quads_on` quads from that at `offset`, which lies
  // in one of the first eight rows and in one of the first two quads; rows_on is
  // a multiple of 8, quads_on of 2. Of the offsets of a row eight differ by more
  // than a constant.
  GEMM_HOST_DEVICE constexpr int Beside(int offset, int rows_on, int quads_on) const {
    constexpr int kLineBytes = 8 * 16;
    const int on = Offset(0, quads_on);
    return (offset ^ on % kLineBytes) + on / kLineBytes * kLineBytes + Offset(rows_on, 0);
  }
};

}  // namespace gemm
