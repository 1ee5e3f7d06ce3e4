// A thread block's product on the warpgroup tensor cores of sm_90a.
#pragma once

#include <cstdint>

#include "kernels/grouped/config.h"
#include "kernels/grouped/operand_tiles.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/wgmma.cuh"

#if GEMM_HAS_WGMMA

namespace gemm {

// Each warpgroup multiplies some of the tile's rows. A stage is complete when every
// thread has waited for its own copies and a barrier has followed. It is free when
// every warp has waited for the products that read it and a barrier has followed.
template <class Variant>
class WgmmaProduct {
  static constexpr GroupedConfig kConfig = Variant::kConfig;
  static constexpr SharedTile kTileA = kConfig.tile_a();
  static constexpr SharedTile kTileB = kConfig.tile_b();
  static constexpr int kStepBytes = 32;  // of k in one instruction
  static constexpr int kSteps = kTileA.row_bytes / kStepBytes;
  static constexpr int kGroupM = kConfig.tile_m / (kConfig.warps / 4);
  static constexpr int kBlocksM = kGroupM / 64;

  static constexpr uint64_t kLayoutA =
      ptx::WgmmaLayout{.span = kTileA.span(), .group_stride = 8 * kTileA.span(), .panel_stride = 0}
          .bits();
  static constexpr uint64_t kLayoutB =
      ptx::WgmmaLayout{.span = kTileB.span(),
                       .group_stride = 8 * kTileB.span(),
                       .panel_stride = kConfig.trans_b() ? 0 : kTileB.panel_bytes()}
          .bits();
  // Bytes from one step over k to the next.
  static constexpr int kAdvanceB =
      kConfig.trans_b() ? kStepBytes : kStepBytes / kConfig.element_bytes() * kTileB.span();

  // Tensor cores accumulate fp8 products with 14 bits. So the product of each stage has
  // accumulators of its own, which are added in f32: parts of at most 64 columns, two
  // of them in turns. Parts are smaller where the tile's accumulators leave few
  // registers.
  static constexpr int kPartN = kConfig.tile_n < 64                      ? kConfig.tile_n
                                : kBlocksM == 1 && kConfig.tile_n == 256 ? 32
                                                                         : 64;
  static constexpr int kPartsN = kConfig.tile_n / kPartN;
  static constexpr int kParts = kBlocksM * kPartsN;
  static_assert(!kConfig.fp8() || kParts % 2 == 0);

 public:
  static constexpr int kBlocksPerSm = kConfig.blocks_per_sm;
  // For store.cuh: a warp holds kRows x kCols accumulators. Those of 16 rows and eight
  // columns lie in its lanes as those of an mma.sync tile.
  static constexpr int kRows = kBlocksM * 16;
  static constexpr int kCols = kConfig.tile_n;

  float accumulators[kBlocksM][kCols / 2];

  // The shuffle tells the compiler that the warp's index is uniform: descriptors of
  // matrices in shared memory have to be in uniform registers.
  __device__ explicit WgmmaProduct(int thread) : warp_(__shfl_sync(~0u, thread / 32, 0)) {
#pragma unroll
    for (int block = 0; block < kBlocksM; ++block) {
#pragma unroll
      for (int x = 0; x < kCols / 2; ++x) accumulators[block][x] = 0;
    }
  }

  // The row and column of the thread block's tile where row `row` of the warp begins.
  __device__ int TileRow(int row) const {
    return warp_ / 4 * kGroupM + row / 16 * 64 + warp_ % 4 * 16 + row % 16;
  }
  __device__ static int TileCol() { return 0; }

  // Accumulates over all of k; `shared` is the address of the stages. No product is
  // under way when it returns, but other warps may still be at work.
  __device__ void Run(OperandTiles<Variant>& operands, uint32_t shared, int64_t k) {
    const int tiles = static_cast<int>((k + kConfig.tile_k - 1) / kConfig.tile_k);
    // Without this the compiler computes the address in every iteration.
    asm volatile("" : "+r"(shared));
#pragma unroll 1
    for (int stage = 0; stage < kConfig.stages - 1; ++stage) {
      operands.StartNext(shared + stage * kConfig.stage_bytes());
    }
    uint32_t stage = shared;
    uint32_t free_stage = shared + (kConfig.stages - 1) * kConfig.stage_bytes();
    const auto wait_for_stage = [] {
      ptx::CpAsyncWait<kConfig.stages - 2>();
      __syncthreads();
    };
    const auto next_stage = [&] {
      free_stage = stage;
      stage += kConfig.stage_bytes();
      if (stage == shared + kConfig.shared_bytes()) stage = shared;
    };
    if constexpr (kConfig.fp8()) {
      const auto multiply = [&]<bool kAfterAnother>(std::bool_constant<kAfterAnother> after) {
        wait_for_stage();
        MultiplyInParts(stage, after, [&] { operands.StartNext(free_stage); });
        next_stage();
      };
      int tile = 0;
      for (; tile < tiles - 1; tile += 2) {
        multiply(std::false_type());
        multiply(std::true_type());
        FinishParts();
      }
      if (tile < tiles) {
        multiply(std::false_type());
        FinishParts();
      }
    } else {
      for (int tile = 0; tile < tiles; ++tile) {
        wait_for_stage();
        Multiply(stage);
        // The stage before is free now; this one is still being multiplied.
        __syncthreads();
        operands.StartNext(free_stage);
        next_stage();
      }
      ptx::WgmmaWait<0>();
      Pin();
    }
  }

 private:
  __device__ uint64_t MatrixA(uint32_t stage) const {
    return ptx::WgmmaMatrix(kLayoutA, stage + warp_ / 4 * kGroupM * kTileA.span());
  }
  __device__ static uint64_t MatrixB(uint32_t stage) {
    return ptx::WgmmaMatrix(kLayoutB, stage + kTileA.bytes());
  }

  __device__ void Pin() {
#pragma unroll
    for (int block = 0; block < kBlocksM; ++block) ptx::WgmmaPin(accumulators[block]);
  }

  // Starts the products of a stage and waits for those of the stage before.
  __device__ __forceinline__ void Multiply(uint32_t stage) {
    const uint64_t a = MatrixA(stage), b = MatrixB(stage);
    Pin();
    ptx::WgmmaFence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int block = 0; block < kBlocksM; ++block) {
        const int offset_a = block * 64 * kTileA.span() + step * kStepBytes;
        ptx::Wgmma<kConfig.operand, kConfig.operand, !kConfig.trans_b()>(
            accumulators[block], a + offset_a / 16, b + step * kAdvanceB / 16, true);
      }
    }
    ptx::WgmmaCommit();
    Pin();
    ptx::WgmmaWait<1>();
  }

  // Multiplies a stage in parts; each part is added while the next is under way. The
  // last part is left under way; `kAfterAnother` says that the stage before left one.
  // Calls `start_copies` when the stage before is free.
  //
  // The loop takes two stages a round, because ptxas serialises all products if one is
  // under way from one round to the next.
  template <bool kAfterAnother, class StartCopies>
  __device__ __forceinline__ void MultiplyInParts(uint32_t stage, std::bool_constant<kAfterAnother>,
                                                  const StartCopies& start_copies) {
    StartPart<0>(stage);
    if constexpr (kAfterAnother) {
      ptx::WgmmaWait<1>();
      AddPart<kParts - 1>();
      __syncthreads();
    }
    start_copies();
    [&]<int... kPart>(std::integer_sequence<int, kPart...>) {
      ((StartPart<kPart + 1>(stage), ptx::WgmmaWait<1>(), AddPart<kPart>()), ...);
    }
    (std::make_integer_sequence<int, kParts - 1>());
  }

  __device__ __forceinline__ void FinishParts() {
    ptx::WgmmaWait<0>();
    AddPart<kParts - 1>();
  }

  template <int kPart>
  __device__ __forceinline__ void StartPart(uint32_t stage) {
    constexpr int kOffsetA = kPart / kPartsN * 64 * kTileA.span();
    constexpr int kOffsetB = kPart % kPartsN * kPartN * kTileB.span();
    const uint64_t a = MatrixA(stage) + kOffsetA / 16, b = MatrixB(stage) + kOffsetB / 16;
    float(&part)[kPartN / 2] = parts_[kPart % 2];
    ptx::WgmmaPin(part);
    ptx::WgmmaFence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      ptx::Wgmma<kConfig.operand, kConfig.operand, false>(part, a + step * kStepBytes / 16,
                                                          b + step * kAdvanceB / 16, step > 0);
    }
    ptx::WgmmaCommit();
  }

  template <int kPart>
  __device__ __forceinline__ void AddPart() {
    ptx::WgmmaPin(parts_[kPart % 2]);
#pragma unroll
    for (int x = 0; x < kPartN / 2; ++x) {
      accumulators[kPart / kPartsN][kPart % kPartsN * (kPartN / 2) + x] += parts_[kPart % 2][x];
    }
  }

  const int warp_;
  float parts_[2][kPartN / 2];  // of fp8, used in turns
};

}  // namespace gemm

#endif  // GEMM_HAS_WGMMA
