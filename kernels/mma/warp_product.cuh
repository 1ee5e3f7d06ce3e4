// A warp's part of the product of two panels in shared memory, with its accumulators.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/mma/config.h"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/mma.cuh"

namespace gemm::mma {

// The addresses at which a lane reads its warp's blocks, of 16 rows by 2 units each.
template <int kUnitBlocks>
struct BlockReader {
  uint32_t offsets[kUnitBlocks];  // of the blocks in the first 16 rows
  int row_block_bytes;

  __device__ BlockReader(SharedPanel panel, BlockOrder order, int lane, int first_row,
                         int first_unit)
      : row_block_bytes(16 * panel.pitch() * kUnitBytes) {
    const PanelUnit place = LaneUnit(order, lane);
#pragma unroll
    for (int u = 0; u < kUnitBlocks; ++u) {
      offsets[u] = static_cast<uint32_t>(
          panel.Offset(first_row + place.row, first_unit + 2 * u + place.unit));
    }
  }

  __device__ uint32_t Address(uint32_t panel, int row_block, int unit_block) const {
    return panel + offsets[unit_block] + static_cast<uint32_t>(row_block * row_block_bytes);
  }
};

template <class Variant>
class WarpProduct {
  static constexpr Config kConfig = Variant::kConfig;
  // mma tiles along n come in pairs, one ldmatrix for each pair.
  static constexpr bool kSingleTile = kConfig.tiles_n == 1;
  static_assert(kSingleTile ? !kConfig.trans_b && kConfig.warps_n == 1 : kConfig.tiles_n % 2 == 0);

 public:
  static constexpr int kPairs = kSingleTile ? 1 : kConfig.tiles_n / 2;
  using AccumulatorFragment =
      std::conditional_t<kConfig.accumulate == DType::kF32, float[4], uint32_t[2]>;  // of a tile
  using BlockA = uint32_t[4];
  using BlockB = uint32_t[kSingleTile ? 2 : 4];

  __device__ WarpProduct(int warp_m, int warp_n, int lane)
      : a_(kConfig.panel_a(), kConfig.order_a(), lane, warp_m * kConfig.warp_m(), 0),
        b_(kConfig.panel_b(), kConfig.order_b(), lane,
           kConfig.trans_b ? warp_n * kConfig.warp_n() : 0,
           kConfig.trans_b ? 0 : warp_n * kConfig.warp_n() / kUnitElements) {}

  // Read the fragment of mma row `tile`, or of mma columns 2 pair and 2 pair + 1, for a
  // step over k of the stage that begins at `stage`.
  __device__ void ReadA(BlockA& block, uint32_t stage, int step, int tile) const {
    ptx::LdMatrixX4(block, a_.Address(stage, tile, step));
  }
  __device__ void ReadB(BlockB& block, uint32_t stage, int step, int pair) const {
    const uint32_t panel = stage + kConfig.panel_a().bytes();
    if constexpr (kSingleTile) {
      ptx::LdMatrixX2Trans(block, b_.Address(panel, step, 0));
    } else if constexpr (kConfig.trans_b) {
      ptx::LdMatrixX4(block, b_.Address(panel, pair, step));
    } else {
      ptx::LdMatrixX4Trans(block, b_.Address(panel, step, pair));
    }
  }

  // Multiplies one step of the two mma tiles of a pair in mma row `tile`.
  __device__ void Multiply(int tile, int pair, bool leftward, const BlockA& a, const BlockB& b) {
    constexpr int kTiles = kSingleTile ? 1 : 2;
#pragma unroll
    for (int x = 0; x < kTiles; ++x) {
      const int side = leftward ? kTiles - 1 - x : x;
      ptx::MmaM16N8K16(accumulators[tile][2 * pair + side], a, b[2 * side], b[2 * side + 1]);
    }
  }

  __device__ void Clear() {
#pragma unroll
    for (int tile = 0; tile < kConfig.tiles_m; ++tile) {
#pragma unroll
      for (int column = 0; column < kConfig.tiles_n; ++column) {
        for (auto& x : accumulators[tile][column]) x = 0;
      }
    }
  }

  AccumulatorFragment accumulators[kConfig.tiles_m][kConfig.tiles_n];

 private:
  BlockReader<kConfig.steps()> a_;
  BlockReader<kConfig.trans_b ? kConfig.steps() : kPairs> b_;
};

}  // namespace gemm::mma
