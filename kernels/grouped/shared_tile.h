// The layout of an operand's tile in shared memory. wgmma requires it, and ldmatrix
// reads it without bank conflicts, too. The unit is a chunk of 16 bytes: one thread's
// copy, and one row of an 8 x 8 matrix.
#pragma once

#include "kernels/numeric/host_device.h"

namespace gemm {

inline constexpr int kChunkBytes = 16;
inline constexpr int kLineBytes = 128;  // all banks once

// A tile of `rows` rows of `row_bytes`; both are powers of two, and row_bytes is at
// least 32. It is cut into panels whose rows are at most a line wide. In a panel the
// index of a chunk in its row is XORed with the index of its line.
struct SharedTile {
  int rows;
  int row_bytes;

  GEMM_HOST_DEVICE constexpr int chunks() const { return row_bytes / kChunkBytes; }
  GEMM_HOST_DEVICE constexpr int bytes() const { return rows * row_bytes; }

  // Bytes of a row in a panel, and of a panel.
  GEMM_HOST_DEVICE constexpr int span() const {
    return row_bytes < kLineBytes ? row_bytes : kLineBytes;
  }
  GEMM_HOST_DEVICE constexpr int panel_bytes() const { return rows * span(); }

  // The byte offset of a chunk. As all sizes are powers of two,
  // Offset(r ^ s, c) == Offset(r, c) ^ Offset(s, 0).
  GEMM_HOST_DEVICE constexpr int Offset(int row, int chunk) const {
    const int in_row = chunk * kChunkBytes;
    const int dense = row * span() + in_row % span();
    const int line = dense / kLineBytes;
    const int swizzled = dense ^ line % (span() / kChunkBytes) * kChunkBytes;
    return in_row / span() * panel_bytes() + swizzled;
  }

  // The offset of the byte that is `rows_on` rows and `chunks_on` chunks further than the one at
  // `offset`. `rows_on` is a multiple of 8. `offset` is in the first chunk of one of the first
  // eight rows. Eight offsets of a row are an XOR away, the rest a constant from those.
  GEMM_HOST_DEVICE constexpr int Beside(int offset, int rows_on, int chunks_on) const {
    const int on = Offset(rows_on, chunks_on);
    return (offset ^ on % kLineBytes) + on / kLineBytes * kLineBytes;
  }
};

}  // namespace gemm
