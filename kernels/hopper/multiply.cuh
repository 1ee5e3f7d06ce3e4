// A warpgroup's products: it multiplies stages as they become full.
#pragma once

#include <cstdint>

#include "kernels/hopper/accumulators.cuh"
#include "kernels/hopper/pipeline.cuh"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/warpgroup.cuh"
#include "kernels/ptx/wgmma.cuh"

#if GEMM_HAS_WGMMA

namespace gemm {

// How wgmma reads a tile of `lines` lines and one panel of k, as HopperLoad left it.
template <bool kAlongK>
struct HopperOperand {
  static constexpr int kSpan = HopperConfig::kPanelBytes;
  static constexpr int kStepBytes = 32;                // of k in one instruction
  static constexpr int kSteps = kSpan / kStepBytes;    // in a stage
  static constexpr int kBoxBytes = kSpan / 2 * kSpan;  // of 64 lines, where not along k
  static constexpr uint64_t kLayout =
      ptx::WgmmaLayout{
          .span = kSpan, .group_stride = 8 * kSpan, .panel_stride = kAlongK ? 0 : kBoxBytes}
          .bits();
  // Bytes from one step over k to the next, and from 64 lines to the next 64.
  static constexpr int kAdvance = kAlongK ? kStepBytes : kStepBytes / 2 * kSpan;
  static constexpr int kBlockBytes = kAlongK ? 64 * kSpan : kBoxBytes;
};

template <class Variant, bool kTransA, bool kTransB>
class HopperProduct {
  static constexpr HopperConfig kConfig = Variant::kConfig;
  using OperandA = HopperOperand<!kTransA>;
  using OperandB = HopperOperand<kTransB>;

 public:
  static constexpr int kBlocksM = kConfig.blocks_m();
  static constexpr int kTileN = kConfig.tile_n;

  // Those of 64 rows and kTileN columns each lie as wgmma.cuh says.
  using Register = AccumulatorRegister<kConfig.accumulator>;
  static constexpr int kRegisters = kTileN / 4 * kPairRegisters<Register>;
  Register accumulators[kBlocksM][kRegisters];

  // Accumulates the stages from `place` on, `k_tiles` of them, and moves `place` behind them.
  // `first_block`: of 64 rows of the tile, for this warpgroup. The last products are under way
  // when it returns.
  __device__ __forceinline__ void Start(const HopperShared<Variant>& shared,
                                        HopperPlace<kConfig.stages>& place, int k_tiles,
                                        int first_block, int first_sharer) {
    if (kConfig.promotes() || (kConfig.split > 1 && k_tiles == 0)) Clear();
    multiplied_ = 0;
    for (int k = 0; k < k_tiles; ++k) {
      ptx::WaitForPhase(shared.full(place.stage), place.parity);
      const uint32_t tile_a = shared.tile_a(place.stage) + first_block * OperandA::kBlockBytes;
      const uint32_t tile_b = shared.tile_b(place.stage);
      if constexpr (kConfig.promotes()) {
        MultiplyInParts(tile_a, tile_b);
        multiplied_ = shared.free(place.stage);
        Free(first_sharer);
      } else {
        Multiply(tile_a, tile_b, k > 0);
        if (k > 0) Free(first_sharer);
        multiplied_ = shared.free(place.stage);
      }
      place.Next();
    }
  }

  // No product is under way when it returns, and the stages are free.
  __device__ __forceinline__ void Finish(int first_sharer) {
    if constexpr (kConfig.promotes()) return;
    ptx::WgmmaWait<0>();
    Pin();
    if (multiplied_ != 0) Free(first_sharer);
  }

  // In place of both, where none of the warpgroup's rows are wanted: it leaves the stages as they
  // become full.
  __device__ __forceinline__ void Pass(const HopperShared<Variant>& shared,
                                       HopperPlace<kConfig.stages>& place, int k_tiles,
                                       int first_sharer) {
    for (int k = 0; k < k_tiles; ++k) {
      ptx::WaitForPhase(shared.full(place.stage), place.parity);
      multiplied_ = shared.free(place.stage);
      Free(first_sharer);
      place.Next();
    }
  }

 private:
  __device__ void Pin() {
#pragma unroll
    for (int block = 0; block < kBlocksM; ++block) ptx::WgmmaPin(accumulators[block]);
  }

  __device__ void Clear() {
#pragma unroll
    for (int block = 0; block < kBlocksM; ++block) {
#pragma unroll
      for (int x = 0; x < kRegisters; ++x) accumulators[block][x] = 0;
    }
  }

  // Starts the products of a stage, and waits for those of the stage before. `add`: not the first.
  __device__ __forceinline__ void Multiply(uint32_t tile_a, uint32_t tile_b, bool add) {
    const uint64_t a = ptx::WgmmaMatrix(OperandA::kLayout, tile_a);
    const uint64_t b = ptx::WgmmaMatrix(OperandB::kLayout, tile_b);
    Pin();
    ptx::WgmmaFence();
#pragma unroll
    for (int step = 0; step < OperandA::kSteps; ++step) {
#pragma unroll
      for (int block = 0; block < kBlocksM; ++block) {
        const int offset_a = block * OperandA::kBlockBytes + step * OperandA::kAdvance;
        ptx::Wgmma<kConfig.operand, kConfig.operand, !kTransB, kTransA>(
            accumulators[block], a + offset_a / 16, b + step * OperandB::kAdvance / 16,
            step > 0 || add);
      }
    }
    ptx::WgmmaCommit();
    Pin();
    ptx::WgmmaWait<1>();
  }

  // Multiplies a stage in parts, and adds them up.
  __device__ __forceinline__ void MultiplyInParts(uint32_t tile_a, uint32_t tile_b) {
    constexpr int kPartN = kConfig.part_n();
    const uint64_t a = ptx::WgmmaMatrix(OperandA::kLayout, tile_a);
    const uint64_t b = ptx::WgmmaMatrix(OperandB::kLayout, tile_b);
#pragma unroll
    for (int block = 0; block < kBlocksM; ++block) {
#pragma unroll
      for (int first = 0; first < kTileN; first += kPartN) {
        const int offset_a = block * OperandA::kBlockBytes, offset_b = first * OperandB::kSpan;
        float part[kPartN / 2];
        ptx::WgmmaPin(part);
        ptx::WgmmaFence();
#pragma unroll
        for (int step = 0; step < OperandA::kSteps; ++step) {
          ptx::Wgmma<kConfig.operand, kConfig.operand, false>(
              part, a + (offset_a + step * OperandA::kAdvance) / 16,
              b + (offset_b + step * OperandB::kAdvance) / 16, step > 0);
        }
        ptx::WgmmaCommit();
        ptx::WgmmaWait<0>();
        ptx::WgmmaPin(part);
        float* const sums = &accumulators[block][first / 2];
#pragma unroll
        for (int x = 0; x < kPartN / 2; ++x) sums[x] += part[x];
      }
    }
  }

  // A warp leaves the stage, in each block that loads a part of it.
  __device__ void Free(int first_sharer) const {
    constexpr int kSharers = kConfig.sharers();
    const uint32_t lane = threadIdx.x % 32;
    if constexpr (kSharers > 1) {
      if (lane < kSharers) ptx::ArriveAt(multiplied_, first_sharer + lane);
    } else {
      if (lane == 0) ptx::Arrive(multiplied_);
    }
  }

  uint32_t multiplied_ = 0;  // `free` of the last stage that was read; 0: none
};

}  // namespace gemm

#endif  // GEMM_HAS_WGMMA
