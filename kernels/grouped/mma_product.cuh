// A thread block's product through mma.sync.
#pragma once

#include <cstdint>

#include "kernels/grouped/config.h"
#include "kernels/grouped/operand_tiles.cuh"
#include "kernels/ptx/grid.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/mma.cuh"

namespace gemm {

// Each warp multiplies its own part of the tile, with fragments that ldmatrix reads
// from a stage. There is one barrier for each stage. After it the stage is complete, and no warp
// reads the stage before any more.
template <class Variant>
class MmaProduct {
  static constexpr GroupedConfig kConfig = Variant::kConfig;
  static constexpr SharedTile kTileA = kConfig.tile_a();
  static constexpr SharedTile kTileB = kConfig.tile_b();
  static constexpr int kStepBytes = 32;  // of k in one instruction
  static constexpr int kStepK = kStepBytes / kConfig.element_bytes();
  static constexpr int kSteps = kTileA.row_bytes / kStepBytes;
  static constexpr int kBlocksM = kConfig.warp_m() / 16;
  static constexpr int kBlocksN = kConfig.warp_n() / 8;
  static_assert(kBlocksN % 2 == 0);

 public:
  static constexpr int kBlocksPerSm = kConfig.mma_blocks_per_sm();
  static constexpr int kRows = kConfig.warp_m();
  static constexpr int kCols = kConfig.warp_n();

  // For each block of 16 rows: the accumulators of its blocks of 8 columns in turn.
  float accumulators[kBlocksM][kBlocksN * 4];

  __device__ explicit MmaProduct(int thread)
      : first_a_(FirstOfA(RowOf(thread), thread % 32)),
        first_b_(FirstOfB(ColOf(thread), thread % 32)) {
#pragma unroll
    for (int block = 0; block < kBlocksM; ++block) {
#pragma unroll
      for (int x = 0; x < kBlocksN * 4; ++x) accumulators[block][x] = 0;
    }
  }

  // The row and column of the thread block's tile where row `row` of the warp begins.
  // Valid after Run.
  __device__ int TileRow(int row) const { return row_ + row; }
  __device__ int TileCol() const { return col_; }

  // Accumulates over all of k; `shared` is the address of the stages. Other warps may
  // still be at work when it returns.
  __device__ void Run(OperandTiles<Variant>& operands, uint32_t shared, int64_t k) {
    auto tiles_left = static_cast<int>((k + kConfig.tile_k - 1) / kConfig.tile_k);
#pragma unroll 1
    for (int stage = 0; stage < kConfig.stages - 1; ++stage) {
      operands.StartNext(shared + stage * kConfig.stage_bytes());
    }
    uint32_t stage = shared;
    uint32_t free_stage = shared + (kConfig.stages - 1) * kConfig.stage_bytes();
    for (; tiles_left > 0; --tiles_left) {
      ptx::CpAsyncWait<kConfig.stages - 2>();
      __syncthreads();
      operands.StartNext(free_stage);
      if constexpr (kConfig.fp8()) {
        MultiplyPromoted(stage);
      } else {
        Multiply(stage);
      }
      free_stage = stage;
      stage += kConfig.stage_bytes();
      if (stage == shared + kConfig.shared_bytes()) stage = shared;
    }
    // Computed here, so that the loop has the registers.
    const int thread = ptx::ThreadAnew();
    row_ = RowOf(thread);
    col_ = ColOf(thread);
  }

 private:
  // The begin of the tile of a thread's warp.
  __device__ static int RowOf(int thread) {
    return thread / 32 / kConfig.warps_n() * kConfig.warp_m();
  }
  __device__ static int ColOf(int thread) {
    return thread / 32 % kConfig.warps_n() * kConfig.warp_n();
  }

  // The chunks of A and B that this lane addresses in the first step for the first
  // block. Those of other steps and blocks are a constant away: by XOR within eight
  // rows of a tile, by addition otherwise.
  __device__ static uint32_t FirstOfA(int row, int lane) {
    constexpr SharedTile kTile = kConfig.tile_a();
    return kTile.Offset(row + lane % 16, lane / 16);
  }
  __device__ static uint32_t FirstOfB(int col, int lane) {
    constexpr SharedTile kTile = kConfig.tile_b();
    return kTileA.bytes() + (kConfig.trans_b()
                                 ? kTile.Offset(col + lane / 16 * 8 + lane % 8, lane / 8 % 2)
                                 : kTile.Offset(lane % 16, col / 8 + lane / 16));
  }

  // The fragment of A of block `block` in step `step` over k.
  __device__ __forceinline__ void LoadA(uint32_t (&fragment)[4], uint32_t stage, int block,
                                        int step) const {
    ptx::LdMatrixX4(fragment, stage + (first_a_ ^ step * kStepBytes) + block * 16 * kTileA.span());
  }

  // The fragments of B of blocks `block` and `block` + 1, two registers each.
  __device__ __forceinline__ void LoadB(uint32_t (&fragment)[4], uint32_t stage, int block,
                                        int step) const {
    if constexpr (kConfig.trans_b()) {
      ptx::LdMatrixX4(fragment, stage + (first_b_ ^ step * kStepBytes) + block * 8 * kTileB.span());
    } else {
      ptx::LdMatrixX4Trans(
          fragment, stage + (first_b_ ^ block * kChunkBytes) + step * kStepK * kTileB.span());
    }
  }

  __device__ __forceinline__ static void Step(float (&to)[4], const uint32_t (&a)[4], uint32_t b0,
                                              uint32_t b1) {
    if constexpr (kConfig.operand == DType::kF16) {
      ptx::MmaM16N8K16(to, a, b0, b1);
    } else if constexpr (kConfig.operand == DType::kBF16) {
      ptx::MmaBf16M16N8K16(to, a, b0, b1);
    } else {
      ptx::MmaFp8M16N8K32<kConfig.operand, kConfig.operand>(to, a, b0, b1);
    }
  }

  __device__ __forceinline__ void Multiply(uint32_t stage) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      uint32_t a[kBlocksM][4], b[kBlocksN / 2][4];
#pragma unroll
      for (int i = 0; i < kBlocksM; ++i) LoadA(a[i], stage, i, step);
#pragma unroll
      for (int j = 0; j < kBlocksN / 2; ++j) LoadB(b[j], stage, 2 * j, step);
#pragma unroll
      for (int i = 0; i < kBlocksM; ++i) {
#pragma unroll
        for (int j = 0; j < kBlocksN; ++j) {
          float(&to)[4] = *reinterpret_cast<float(*)[4]>(&accumulators[i][4 * j]);
          Step(to, a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        }
      }
    }
  }

  // Tensor cores accumulate fp8 products with 14 bits. So the product of each stage has
  // accumulators of its own, which are added in f32.
  __device__ __forceinline__ void MultiplyPromoted(uint32_t stage) {
#pragma unroll
    for (int i = 0; i < kBlocksM; ++i) {
      uint32_t a[kSteps][4];
#pragma unroll
      for (int step = 0; step < kSteps; ++step) LoadA(a[step], stage, i, step);
#pragma unroll
      for (int j = 0; j < kBlocksN; j += 2) {
        float parts[2][4] = {};
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
          uint32_t b[4];
          LoadB(b, stage, j, step);
          Step(parts[0], a[step], b[0], b[1]);
          Step(parts[1], a[step], b[2], b[3]);
        }
#pragma unroll
        for (int x = 0; x < 8; ++x) accumulators[i][4 * j + x] += parts[x / 4][x % 4];
      }
    }
  }

  int row_;
  int col_;
  const uint32_t first_a_;
  const uint32_t first_b_;
};

}  // namespace gemm
