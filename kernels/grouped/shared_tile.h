// Where an operand's tile lies in shared memory: as wgmma takes it, which
// ldmatrix then reads without bank conflicts, too. Counted in chunks of 16
// bytes: what one thread copies and one row of an 8 x 8 matrix.
#pragma once

#include "kernels/numeric/host_device.h"

namespace gemm {

inline constexpr int kChunkBytes = 16;
inline constexpr int kLineBytes = 128;  // all banks once

// A tile of `rows` rows of `row_bytes`, both powers of two, rows of at least 32
// bytes. It is cut into panels whose rows are at most a line wide, and in each
// the number of a chunk in its row is XORed with that of the line it lies in.
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

  // The byte `rows_on` rows, a multiple of 8, and `chunks_on` chunks from that at
  // `offset`, which lies in the first chunk of one of the first eight rows. Eight
  // of a row's offsets are an XOR away, and the rest a constant from these.
  GEMM_HOST_DEVICE constexpr int Beside(int offset, int rows_on, int chunks_on) const {
    const int on = Offset(rows_on, chunks_on);
    return (offset ^ on % kLineBytes) + on / kLineBytes * kLineBytes;
  }
};

}  // namespace gemm
