// Copies tiles of a stored matrix to shared memory by cp.async. All threads of a block
// take part.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/grouped/shared_tile.h"
#include "kernels/ptx/cp_async.cuh"

namespace gemm {

// A matrix in device memory, in bytes.
struct StoredMatrix {
  const std::byte* data;
  int64_t pitch;
};

// Each thread copies one chunk of every kRowStep-th row.
template <SharedTile kTile, int kThreads>
class TileCopy {
 public:
  static constexpr int kRowStep = kThreads / kTile.chunks();
  static constexpr int kSteps = kTile.rows / kRowStep;
  // More would take registers that such a large tile does not leave.
  static constexpr int kMostUnrolled = kSteps <= 8 ? kSteps : 4;
  static_assert(kRowStep >= 1 && kSteps >= 1);

  // The first tile begins at `row` and `byte` of the matrix.
  __device__ TileCopy(const StoredMatrix& matrix, int64_t row, int64_t byte, int thread)
      : row_(thread / kTile.chunks()),
        byte_(thread % kTile.chunks() * kChunkBytes),
        offset_(kTile.Offset(row_, thread % kTile.chunks())),
        step_(matrix.pitch * kRowStep),
        source_(matrix.data + (row + row_) * matrix.pitch + byte + byte_) {}

  // Starts to copy a tile to shared address `target`. Everything beyond `rows` rows and `bytes`
  // bytes of a row becomes zeros.
  __device__ __forceinline__ void Start(uint32_t target, int rows, int bytes) const {
    // Most tiles are whole. A decision for each chunk would double their instructions.
    if (rows >= kTile.rows && bytes >= kTile.row_bytes) {
      StartEach<kMostUnrolled>(target, [](int) { return kChunkBytes; });
    } else {
      const int left = bytes - byte_;
      const int valid = left < 0 ? 0 : left < kChunkBytes ? left : kChunkBytes;
      StartEach<1>(target, [&](int row) { return row < rows ? valid : 0; });
    }
  }

  // Moves on by `bytes` of memory.
  __device__ __forceinline__ void Advance(int64_t bytes) { source_ += bytes; }

 private:
  // Starts to copy valid_bytes(row) bytes of each row. If that is 0, the address is not read.
  template <int kUnroll, class ValidBytes>
  __device__ __forceinline__ void StartEach(uint32_t target, const ValidBytes& valid_bytes) const {
    const std::byte* source = source_;
#pragma unroll kUnroll
    for (int i = 0; i < kSteps; ++i) {
      const uint32_t offset = offset_ ^ static_cast<uint32_t>(kTile.Offset(i * kRowStep, 0));
      ptx::CpAsync(target + offset, source, valid_bytes(row_ + i * kRowStep));
      source += step_;
    }
  }

  const int row_;
  const int byte_;
  const uint32_t offset_;
  const int64_t step_;
  const std::byte* source_;
};

}  // namespace gemm
