// Copies of an operand's k-tiles from global into shared memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ptx/cp_async.cuh"
#include "kernels/wmma/config.h"

namespace gemm::wmma {

// A row-major operand in global memory.
struct Operand {
  const std::byte* data;
  int64_t pitch;  // bytes
};

// The first `bytes` of a unit, zeros behind them.
__device__ inline uint4 KeepBytes(uint4 unit, int bytes) {
  uint32_t* const words[] = {&unit.x, &unit.y, &unit.z, &unit.w};
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    if (bytes <= 4 * w) *words[w] = 0;
    if (bytes == 4 * w + 2) *words[w] &= 0xffffu;
  }
  return unit;
}

// A thread's share of the copies of one operand. Units outside the matrix along m or n
// are not copied: they affect only elements of D that are not stored. Elements beyond k
// become zeros.
//
// `Side` has constexpr Panel kPanel, bool kRowsAreK (the panel's rows count k),
// int kThreads and Copies kCopies.
template <class Side>
class KTileCopy {
  static constexpr Panel kPanel = Side::kPanel;
  static constexpr int kUnits = kPanel.units();
  // If there are fewer units than threads, some threads copy nothing.
  static constexpr int kShare = (kUnits + Side::kThreads - 1) / Side::kThreads;
  static_assert(kUnits % Side::kThreads == 0 || kShare == 1);
  // A thread copies the same columns of rows that are this far apart.
  static constexpr int kRowStep = Side::kThreads / kPanel.row_units();
  static_assert(Side::kThreads % kPanel.row_units() == 0 &&
                (kShare == 1 || kRowStep % CopyGroup(kPanel).rows() == 0));
  static constexpr int kTileK = Side::kRowsAreK ? kPanel.rows : kPanel.columns;

 public:
  // For a panel that begins at `first` along m or n, where the matrix has `count`.
  __device__ KTileCopy(const Operand& operand, int64_t first, int64_t count, int thread)
      : pitch_(operand.pitch) {
    constexpr Panel kLayout = kPanel;  // device code has no address of a member
    place_ = CopiedUnit(kLayout, thread);
    shared_ = kLayout.Offset(place_.row, place_.column);
    source_ = operand.data + place_.row * pitch_ + place_.column * kLayout.element_bytes +
              first * (Side::kRowsAreK ? kLayout.element_bytes : pitch_);
#pragma unroll
    for (int u = 0; u < kShare; ++u) {
      const int row = place_.row + u * kRowStep;
      inside_[u] = row < kLayout.rows && first + (Side::kRowsAreK ? place_.column : row) < count;
    }
  }

  // Copies the next k-tile, which is a whole one.
  __device__ void CopyWhole(std::byte* panel) {
#pragma unroll
    for (int u = 0; u < kShare; ++u) {
      if (inside_[u]) CopyUnit(Shared(u, panel), source_ + u * kRowStep * pitch_, kUnitBytes);
    }
    source_ += Side::kRowsAreK ? kTileK * pitch_ : kTileK * kPanel.element_bytes;
  }

  // Copies the k-tile that is `k_tile` k-tiles on. Only its first `k_left` of k are there.
  __device__ void CopyPartial(std::byte* panel, int k_tile, int k_left) const {
    const int64_t ahead = int64_t{k_tile} * kTileK;
    const std::byte* const first =
        source_ + ahead * (Side::kRowsAreK ? pitch_ : kPanel.element_bytes);
#pragma unroll
    for (int u = 0; u < kShare; ++u) {
      const int left = k_left - (Side::kRowsAreK ? place_.row + u * kRowStep : place_.column);
      const int elements =
          Side::kRowsAreK ? kPanel.unit_elements() : min(kPanel.unit_elements(), left);
      const int valid = left > 0 ? elements * kPanel.element_bytes : 0;
      // A unit beyond k may lie outside the matrix.
      const std::byte* const source = valid > 0 ? first + u * kRowStep * pitch_ : source_;
      if (inside_[u]) CopyUnit(Shared(u, panel), source, valid);
    }
  }

 private:
  __device__ std::byte* Shared(int u, std::byte* panel) const {
    return panel + shared_ + u * kRowStep * kPanel.pitch();
  }

  __device__ static void CopyUnit(std::byte* shared, const std::byte* source, int valid) {
    if constexpr (Side::kCopies == Copies::kAsync) {
      ptx::CpAsync(ptx::SharedAddress(shared), source, valid);
    } else {
      const uint4 unit = valid > 0 ? *reinterpret_cast<const uint4*>(source) : uint4{};
      *reinterpret_cast<uint4*>(shared) = valid < kUnitBytes ? KeepBytes(unit, valid) : unit;
    }
  }

  UnitPlace place_;
  int shared_;  // offset of the first unit in the panel
  int64_t pitch_;
  const std::byte* source_;  // of the first unit
  bool inside_[kShare];
};

}  // namespace gemm::wmma
