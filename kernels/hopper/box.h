// The layout of a box in shared memory, as TMA writes and reads it.
#pragma once

#include "kernels/numeric/host_device.h"

namespace gemm {

inline constexpr int kBoxRowBytes = 128;

// The offset of 16-byte chunk `chunk` of row `row`, from the box's begin, a multiple of 1024.
GEMM_HOST_DEVICE constexpr int ChunkOfBox(int row, int chunk) {
  return row * kBoxRowBytes + (chunk ^ row % 8) * 16;
}

// The offset in a box of 64 rows at which a lane of warp `warp` of a warpgroup stores its
// accumulators (wgmma.cuh). As 16-bit elements, for stmatrix: the row of four 8 x 8 matrices whose
// address the lane supplies, for 16 columns from 16 `pair` on.
GEMM_HOST_DEVICE constexpr int MatrixRowOfBox(int warp, int lane, int pair) {
  return ChunkOfBox(warp * 16 + lane % 16, pair * 2 + lane / 16);
}

// The same for a transposing stmatrix, in a box whose rows are the accumulators' columns.
GEMM_HOST_DEVICE constexpr int TransposedRowOfBox(int warp, int lane, int pair) {
  return ChunkOfBox(pair * 16 + lane / 16 * 8 + lane % 8, warp * 2 + lane / 8 % 2);
}

// As floats: the two of columns from 8 `j` on, in the upper or lower 8 of the warp's rows. Half a
// warp takes two passes, not one.
GEMM_HOST_DEVICE constexpr int PairOfBox(int warp, int lane, int half, int j) {
  return ChunkOfBox(warp * 16 + half * 8 + lane / 4, 2 * j + lane % 4 / 2) + lane % 2 * 8;
}

// The transpose as floats, 32 columns of two warps: the first of a pair from column 8 `j` on, in
// the upper or lower 8 of the warp's rows. The second one is a row below.
GEMM_HOST_DEVICE constexpr int TransposedOfBox(int warp, int lane, int half, int j, int second) {
  const int column = warp % 2 * 16 + half * 8 + lane / 4;
  return ChunkOfBox(8 * j + lane % 4 * 2 + second, column / 4) + column % 4 * 4;
}

}  // namespace gemm
