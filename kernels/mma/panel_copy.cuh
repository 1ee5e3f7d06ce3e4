// Copies of an operand's k-tiles from global into shared memory.
#pragma once

#include <cstdint>

#include "kernels/mma/arguments.cuh"
#include "kernels/mma/shared_panel.h"
#include "kernels/ptx/cp_async.cuh"

namespace gemm::mma {

// A thread's share of the copies of one operand. Rows and units outside the matrix
// along m or n are not copied: they affect only elements of D that are not stored.
// Elements beyond k become zeros.
//
// `Shape` has constexpr SharedPanel kPanel, bool kRowsAreK (panel rows count k),
// int kThreads and bool kAsync (cp.async, or through registers).
template <class Shape>
class PanelCopy {
 public:
  static constexpr SharedPanel kPanel = Shape::kPanel;
  static constexpr int kUnits = kPanel.rows * kPanel.units;
  // Copies of a thread. If there are fewer units than threads, some threads copy nothing.
  static constexpr int kCopies = (kUnits + Shape::kThreads - 1) / Shape::kThreads;
  static_assert(kUnits % Shape::kThreads == 0 || kCopies == 1);
  static constexpr int kTileK = Shape::kRowsAreK ? kPanel.rows : kPanel.units * kUnitElements;
  // A thread copies the same unit of rows that are this far apart.
  static constexpr int kRowStep = Shape::kThreads / kPanel.units;
  static_assert(Shape::kThreads % kPanel.units == 0 && (kCopies == 1 || kRowStep % 16 == 0));

  __device__ explicit PanelCopy(const StoredOperand& operand)
      : k_tile_bytes_(kTileK * (Shape::kRowsAreK ? operand.pitch : kElementBytes)) {
    constexpr SharedPanel kLayout = kPanel;
    place_ = CopiedUnit(kLayout, static_cast<int>(threadIdx.x));
    shared_ = static_cast<uint32_t>(kLayout.Offset(place_.row, place_.unit));
  }

  // Moves to the first k-tile of the panel that starts at `first` along m or n, where the
  // matrix has `count`.
  __device__ void MoveTo(const StoredOperand& operand, int64_t first, int64_t count) {
    constexpr SharedPanel kLayout = kPanel;
    const std::byte* const panel =
        operand.data + first * (Shape::kRowsAreK ? kElementBytes : operand.pitch);
#pragma unroll
    for (int c = 0; c < kCopies; ++c) {
      const int row = place_.row + c * kRowStep;
      source_[c] = panel + row * operand.pitch + place_.unit * kUnitBytes;
      inside_[c] = row < kLayout.rows &&
                   first + (Shape::kRowsAreK ? place_.unit * kUnitElements : row) < count;
    }
  }

  // Copies the next k-tile, which is a whole one.
  __device__ void Copy(uint32_t panel) {
#pragma unroll
    for (int c = 0; c < kCopies; ++c) {
      if (inside_[c]) {
        if constexpr (Shape::kAsync) {
          ptx::CpAsync(Shared(c, panel), source_[c], kUnitBytes);
        } else {
          StoreUnit(c, panel, *reinterpret_cast<const uint4*>(source_[c]));
        }
      }
      source_[c] += k_tile_bytes_;
    }
  }

  // Copies the k-tile that is `k_tiles` k-tiles on. Only its first k_left of k are
  // there.
  __device__ void CopyTail(uint32_t panel, int64_t k_tiles, int k_left) const {
#pragma unroll
    for (int c = 0; c < kCopies; ++c) {
      if (!inside_[c]) continue;
      const int first_k =
          Shape::kRowsAreK ? place_.row + c * kRowStep : place_.unit * kUnitElements;
      const int valid =
          max(0, min(kUnitElements,
                     Shape::kRowsAreK ? (first_k < k_left) * kUnitElements : k_left - first_k));
      // A unit beyond k may lie outside the memory.
      const std::byte* const source = valid > 0 ? source_[c] + k_tiles * k_tile_bytes_ : source_[0];
      if constexpr (Shape::kAsync) {
        ptx::CpAsync(Shared(c, panel), source, valid * static_cast<int>(kElementBytes));
      } else {
        StoreUnit(c, panel, valid > 0 ? LoadElements(source, valid) : uint4{});
      }
    }
  }

 private:
  static constexpr int64_t kElementBytes = sizeof(uint16_t);

  __device__ uint32_t Shared(int c, uint32_t panel) const {
    return panel + shared_ + static_cast<uint32_t>(c * kRowStep * kPanel.pitch() * kUnitBytes);
  }

  __device__ void StoreUnit(int c, uint32_t panel, const uint4& unit) const {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(Shared(c, panel)), "r"(unit.x),
                 "r"(unit.y), "r"(unit.z), "r"(unit.w)
                 : "memory");
  }

  // The first `count` elements of a unit, zeros behind them.
  __device__ static uint4 LoadElements(const std::byte* source, int count) {
    uint4 unit = *reinterpret_cast<const uint4*>(source);
    uint32_t* const pairs[] = {&unit.x, &unit.y, &unit.z, &unit.w};
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      if (count <= 2 * p) *pairs[p] = 0;
      if (count == 2 * p + 1) *pairs[p] &= 0xffffu;
    }
    return unit;
  }

  int64_t k_tile_bytes_;
  PanelUnit place_;
  uint32_t shared_;
  const std::byte* source_[kCopies];  // read only where it is inside
  bool inside_[kCopies];
};

}  // namespace gemm::mma
