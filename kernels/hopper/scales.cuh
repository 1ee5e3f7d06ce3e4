// Block scales in a Hopper kernel: a stage of fp8 operands is a block of k, so that the sum of its
// products is scaled where it is promoted.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gemm/problem.h"
#include "kernels/hopper/config.h"
#include "kernels/hopper/schedule.cuh"

namespace gemm {

// Of one operand, with as many lines (rows of op(A), columns of op(B)). There are fewer than 2^32
// elements: no device has an operand of as many blocks of 128.
struct HopperScales {
  const float* data;
  uint32_t line_step;
  uint32_t block_step;
  int last_line;
  bool tiles;  // 128 lines share their scales

  // The place of the scale of block 0 of k, for this line. Beyond the last one it does not matter
  // which.
  __device__ uint32_t OfLine(int line) const {
    const auto within = static_cast<uint32_t>(min(line, last_line));
    return (tiles ? within / static_cast<uint32_t>(kScaleBlock) : within) * line_step;
  }
};

inline HopperScales MakeHopperScales(const ScaleView& scales, ScaleBlocks blocks, int64_t lines) {
  return {.data = scales.data,
          .line_step = static_cast<uint32_t>(scales.line_step),
          .block_step = static_cast<uint32_t>(scales.block_step),
          .last_line = static_cast<int>(lines) - 1,
          .tiles = blocks == ScaleBlocks::kTiles};
}

// HopperTiles (schedule.cuh) of a product with block scales, those of B of this kind: a kernel for
// both would spill registers.
template <class VariantOfTiles, ScaleBlocks kScalesOfB>
class HopperScaledTiles : public HopperTiles<VariantOfTiles> {
 public:
  struct Arguments : HopperTiles<VariantOfTiles>::Arguments {
    HopperScales scales_a;
    HopperScales scales_b;
  };

  using HopperTiles<VariantOfTiles>::HopperTiles;
  static constexpr ScaleBlocks kOfB = kScalesOfB;
};

template <class Tiles>
inline constexpr bool kHasScales = false;
template <class Variant, ScaleBlocks kOfB>
inline constexpr bool kHasScales<HopperScaledTiles<Variant, kOfB>> = true;

// For a product without.
template <class Variant>
struct NoScales {
  static constexpr int kPartN = Variant::kConfig.part_n();
};

// Those that a thread needs of its warpgroup's rows of a tile, and of the tile's columns.
template <class Variant, int kBlocksM, ScaleBlocks kOfB>
class HopperTileScales {
  static constexpr HopperConfig kConfig = Variant::kConfig;
  static constexpr bool kOneForAll = kOfB == ScaleBlocks::kTiles;  // columns of a part
  static_assert(kConfig.tile_k() == kScaleBlock);

 public:
  // Columns that are multiplied at a time: fewer where what scales each takes registers.
  static constexpr int kPartN = kConfig.part_n();
  static_assert(kScaleBlock % kPartN == 0 && kPartN % 64 == 0 && kConfig.tile_n % kPartN == 0);

  // Of the tile whose rows begin at `row`, for this warpgroup, and its columns at `column`.
  __device__ HopperTileScales(const HopperScales& of_a, const HopperScales& of_b, int row,
                              int column, int first_k)
      : of_a_(of_a),
        of_b_(of_b),
        lane_(threadIdx.x % 32),
        column_(column + (kOneForAll ? 0 : static_cast<int>(lane_ / 4 * 8 + lane_ % 4 * 2))),
        row_(row + static_cast<int>(threadIdx.x % 128 / 32 * 16 + lane_ / 4)),
        block_(static_cast<uint32_t>(first_k)) {}

  // Loads those of the rows for the next block of k: before its products are awaited.
  __device__ __forceinline__ void Load() {
    const int row = Anew(row_);
#pragma unroll
    for (int x = 0; x < 2 * kBlocksM; ++x) {
      const uint32_t line = of_a_.OfLine(row + (x / 2 * 64 + x % 2 * 8));
      of_rows_[x] = __ldg(of_a_.data + (line + block_ * of_a_.block_step));
    }
  }
  // Behind it.
  __device__ __forceinline__ void Next() { ++block_; }

  // A warp's scales of the columns of a part. A thread has those of columns that others multiply:
  // column 8 j + 2 q + y is with lane 4 (j % 8) + q, at 2 (j / 8) + y. So each is loaded once, and
  // few registers wait for it.
  struct Columns {
    float scales[kOneForAll ? 1 : kPartN / 32];
  };

  // Loads those from column `first` of the tile on: before the products are awaited.
  __device__ __forceinline__ Columns LoadColumns(int first) const {
    const uint32_t block = block_ * of_b_.block_step;
    Columns columns;
    if constexpr (kOneForAll) {
      columns.scales[0] = __ldg(of_b_.data + (of_b_.OfLine(column_ + first) + block));
      return columns;
    }
    const int own = Anew(column_);
#pragma unroll
    for (int x = 0; x < kPartN / 32; ++x) {
      const auto line =
          static_cast<uint32_t>(min(own + (first + x / 2 * 64 + x % 2), of_b_.last_line));
      columns.scales[x] = __ldg(of_b_.data + (line * of_b_.line_step + block));
    }
    return columns;
  }

  // Adds the products of `part` to `sums`, for rows of `block`.
  __device__ __forceinline__ void Add(const float (&part)[kPartN / 2], int block,
                                      const Columns& columns, float* sums) const {
    const float row = of_rows_[2 * block], other_row = of_rows_[2 * block + 1];
    if constexpr (kOneForAll) {
      const float scale = row * columns.scales[0], other = other_row * columns.scales[0];
#pragma unroll
      for (int x = 0; x < kPartN / 2; ++x) sums[x] += part[x] * (x % 4 < 2 ? scale : other);
      return;
    }
#pragma unroll
    for (int j = 0; j < kPartN / 8; ++j) {
#pragma unroll
      for (int y = 0; y < 2; ++y) {
        const float column = __shfl_sync(~0u, columns.scales[j / 8 * 2 + y], j % 8 * 4 + lane_ % 4);
        const int x = 4 * j + y;
        sums[x] += part[x] * column * row;
        sums[x + 2] += part[x + 2] * column * other_row;
      }
    }
  }

 private:
  // The same, to be computed with in each step: places that live through the loop over k would cost
  // registers.
  __device__ __forceinline__ static int Anew(int x) {
    asm volatile("" : "+r"(x));
    return x;
  }

  const HopperScales& of_a_;
  const HopperScales& of_b_;
  const uint32_t lane_;
  const int column_;  // of B by lines, the first that this thread loads
  const int row_;     // its first
  uint32_t block_;    // of k
  float of_rows_[2 * kBlocksM];
};

}  // namespace gemm
