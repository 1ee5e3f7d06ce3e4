// Block scales in a Hopper kernel. A stage of fp8 operands is a block of k, so the sum of its
// products is scaled when it is promoted.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gemm/problem.h"
#include "kernels/hopper/config.h"
#include "kernels/hopper/schedule.cuh"
#include "kernels/ptx/warpgroup.cuh"

namespace gemm {

// The scales of one operand, whose lines are rows of op(A) or columns of op(B). There are fewer
// than 2^32 of them: no device holds an operand of so many blocks of 128.
struct HopperScales {
  const float* data;
  uint32_t line_step;
  uint32_t block_step;
  int last_line;
  bool tiles;  // 128 lines share their scales

  // The index of this line's scale for block 0 of k. Beyond the last line, any scale will do.
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

// HopperTiles (schedule.cuh) of a product with block scales, where B's are of the kind kScalesOfB.
// A kernel for both kinds would spill registers.
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

// For a product without block scales.
template <class Variant>
struct NoScales {
  static constexpr int kPartN = Variant::kConfig.part_n();
};

// Bytes of shared memory for the scales of a warpgroup's columns. 0 unless each column has its own.
template <class Tiles>
constexpr int HopperScaleBytes() {
  if constexpr (kHasScales<Tiles>) {
    if (Tiles::kOfB == ScaleBlocks::kLines) return Tiles::Variant::kConfig.tile_n * 4;
  }
  return 0;
}

// The scales that a thread needs for its warpgroup's rows of a tile, and for the tile's columns.
// Those of a block of k are loaded while the block before it is multiplied.
template <class Variant, int kBlocksM, ScaleBlocks kOfB>
class HopperTileScales {
  static constexpr HopperConfig kConfig = Variant::kConfig;
  static constexpr bool kOneForAll = kOfB == ScaleBlocks::kTiles;  // columns of a part
  static constexpr int kRows = 2 * kBlocksM;
  // Columns, or blocks of them, whose scale a thread loads.
  static constexpr int kColumns = (kConfig.tile_n + kScaleBlock - 1) / kScaleBlock;
  static_assert(kConfig.tile_k() == kScaleBlock && ptx::kWarpgroupThreads == kScaleBlock);

 public:
  // Columns that are multiplied at a time.
  static constexpr int kPartN = kConfig.part_n();
  static_assert(kScaleBlock % kPartN == 0 && kPartN % 32 == 0 && kConfig.tile_n % kPartN == 0);

  // For a tile whose columns begin at `column`, and whose rows for this warpgroup begin at `row`,
  // from block `first_k` of k on. `shared`: HopperScaleBytes of shared memory for each warpgroup
  // that multiplies.
  __device__ HopperTileScales(const HopperScales& of_a, const HopperScales& of_b, int row,
                              int column, int first_k, uint32_t shared)
      : of_a_(of_a),
        of_b_(of_b),
        row_(row + static_cast<int>(threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4)),
        column_(column + (kOneForAll ? 0 : static_cast<int>(threadIdx.x % 128))),
        first_k_(first_k),
        shared_(shared) {
    Load(0);
  }

  // Begins a block of k. `next`: the block after it, or the last one again, counted from `first_k`.
  __device__ __forceinline__ void Begin(int next) {
#pragma unroll
    for (int x = 0; x < kRows; ++x) rows_[x] = next_rows_[x];
    if constexpr (kOneForAll) {
#pragma unroll
      for (int x = 0; x < kColumns; ++x) columns_[x] = next_columns_[x];
      Load(next);
    }
  }

  // Hands the columns' scales to the warpgroup. Called while its first products of the block are
  // under way.
  __device__ __forceinline__ void HandOver(int next) {
    if constexpr (kOneForAll) return;
    const int barrier = static_cast<int>(threadIdx.x) / 128;  // the warpgroup's
    const uint32_t shared = Shared();
    ptx::WarpgroupBarrier(barrier);  // those of the block before were read
#pragma unroll
    for (int x = 0; x < kColumns; ++x) {
      const int column = static_cast<int>(threadIdx.x) % 128 + x * static_cast<int>(kScaleBlock);
      if (column >= kConfig.tile_n) break;
      asm volatile("st.shared.f32 [%0], %1;" ::"r"(shared + 4 * column), "f"(next_columns_[x])
                   : "memory");
    }
    Load(next);
    ptx::WarpgroupBarrier(barrier);
  }

  // Adds the products of `part`, whose columns begin at `first` of the tile, to `sums`, for rows
  // of `block`.
  __device__ __forceinline__ void Add(const float (&part)[kPartN / 2], int block, int first,
                                      float* sums) const {
    const float row = rows_[2 * block], other_row = rows_[2 * block + 1];
    if constexpr (kOneForAll) {
      const float column = columns_[first / static_cast<int>(kScaleBlock)];
      const float scale = row * column, other = other_row * column;
#pragma unroll
      for (int x = 0; x < kPartN / 2; ++x) sums[x] += part[x] * (x % 4 < 2 ? scale : other);
      return;
    }
    const uint32_t from = Shared() + 4 * first + threadIdx.x % 4 * 8;
#pragma unroll
    for (int x = 0; x < kPartN / 2; x += 4) {
      // The scales of all columns at once would not fit in the registers.
      if (x % 32 == 0 && x > 0) __syncwarp();
      float column[2];  // 2 x and the one after it
      asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                   : "=f"(column[0]), "=f"(column[1])
                   : "r"(from + 8 * x));
#pragma unroll
      for (int y = 0; y < 2; ++y) {
        sums[x + y] += part[x + y] * (column[y] * row);
        sums[x + y + 2] += part[x + y + 2] * (column[y] * other_row);
      }
    }
  }

 private:
  // `x` itself, hidden from the compiler. So it computes indices again in each step: kept through
  // the loop over k, they would cost registers.
  __device__ __forceinline__ static int Anew(int x) {
    asm volatile("" : "+r"(x));
    return x;
  }

  // This warpgroup's part of the shared memory.
  __device__ __forceinline__ uint32_t Shared() const {
    return shared_ + (static_cast<uint32_t>(Anew(threadIdx.x)) / 128 - 1) * (4 * kConfig.tile_n);
  }

  // Not through __ldg, which is for memory that nobody writes while a kernel runs. The kernel
  // before may have written the scales, and may still run when this one begins (AwaitKernelBefore).
  __device__ __forceinline__ void Load(int k) {
    const auto block = static_cast<uint32_t>(first_k_ + k);
    const int row = Anew(row_), column = Anew(column_);
#pragma unroll
    for (int x = 0; x < kRows; ++x) {
      const uint32_t line = of_a_.OfLine(row + (x / 2 * 64 + x % 2 * 8));
      next_rows_[x] = of_a_.data[line + block * of_a_.block_step];
    }
#pragma unroll
    for (int x = 0; x < kColumns; ++x) {
      const uint32_t line = of_b_.OfLine(column + x * static_cast<int>(kScaleBlock));
      next_columns_[x] = of_b_.data[line + block * of_b_.block_step];
    }
  }

  const HopperScales& of_a_;
  const HopperScales& of_b_;
  const int row_;     // its first
  const int column_;  // of B, the first that this thread loads
  const int first_k_;
  const uint32_t shared_;
  float rows_[kRows], next_rows_[kRows];
  float columns_[kColumns];  // if all columns of a part share one
  float next_columns_[kColumns];
};

}  // namespace gemm
