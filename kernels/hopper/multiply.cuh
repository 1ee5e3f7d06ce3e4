// A warpgroup's products: it multiplies stages as they become full.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/hopper/accumulators.cuh"
#include "kernels/hopper/box.h"
#include "kernels/hopper/f32x3.h"
#include "kernels/hopper/pipeline.cuh"
#include "kernels/hopper/scales.cuh"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/ldmatrix.cuh"
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
  // Every kLevelStages stages, sums are added to totals: chains of additions are then far shorter.
  static constexpr bool kTwoLevels = kConfig.two_levels;
  static constexpr int kLevelStages = 8;

  // The accumulators of each 64 rows and kTileN columns lie as wgmma.cuh says.
  using Register = AccumulatorRegister<kConfig.accumulator>;
  static constexpr int kRegisters = kTileN / 4 * kPairRegisters<Register>;
  Register accumulators[kBlocksM][kRegisters];

  // Accumulates `k_tiles` stages from `place` on, and moves `place` behind them. `first_block`:
  // this warpgroup's first block of 64 rows of the tile. The last products are under way when it
  // returns. `scales`: NoScales, or HopperTileScales of the tile.
  template <class Scales>
  __device__ __forceinline__ void Start(const HopperShared<Variant>& shared,
                                        HopperPlace<kConfig.stages>& place, int k_tiles,
                                        int first_block, int first_sharer, Scales scales) {
    if (kConfig.promotes() || (kConfig.split > 1 && k_tiles == 0)) Clear();
    multiplied_ = 0;
    for (int k = 0; k < k_tiles; ++k) {
      if constexpr (kScaled<Scales>) scales.Begin(min(k + 1, k_tiles - 1));
      ptx::WaitForPhase(shared.full(place.stage), place.parity);
      const uint32_t tile_a = shared.tile_a(place.stage) + first_block * OperandA::kBlockBytes;
      const uint32_t tile_b = shared.tile_b(place.stage);
      if constexpr (kConfig.promotes()) {
        if constexpr (kConfig.f32x3) {
          MultiplyThrice(tile_a, tile_b);
        } else {
          MultiplyInParts(tile_a, tile_b, scales, min(k + 1, k_tiles - 1));
        }
        multiplied_ = shared.free(place.stage);
        Free(first_sharer);
        if constexpr (kTwoLevels) {
          if (k % kLevelStages == kLevelStages - 1) AddToTotals();
        }
      } else {
        Multiply(tile_a, tile_b, k > 0);
        if (k > 0) Free(first_sharer);
        multiplied_ = shared.free(place.stage);
      }
      place.Next();
    }
  }

  // When it returns, no product is under way, and the stages are free.
  __device__ __forceinline__ void Finish(int first_sharer) {
    if constexpr (kTwoLevels) AddTotals();
    if constexpr (kConfig.promotes()) return;
    ptx::WgmmaWait<0>();
    Pin();
    if (multiplied_ != 0) Free(first_sharer);
  }

  // Replaces Start and Finish if none of the warpgroup's rows are needed: frees the stages as they
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
  template <class Scales>
  static constexpr bool kScaled = !std::is_same_v<Scales, NoScales<Variant>>;

  __device__ void Pin() {
#pragma unroll
    for (int block = 0; block < kBlocksM; ++block) ptx::WgmmaPin(accumulators[block]);
  }

  __device__ void Clear() {
#pragma unroll
    for (int block = 0; block < kBlocksM; ++block) {
#pragma unroll
      for (int x = 0; x < kRegisters; ++x) {
        accumulators[block][x] = 0;
        if constexpr (kTwoLevels) totals_[block][x] = 0;
      }
    }
  }

  // Starts the products of a stage, and waits for those of the stage before. `add`: false for the
  // first stage.
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
  template <class Scales>
  __device__ __forceinline__ void MultiplyInParts(uint32_t tile_a, uint32_t tile_b, Scales& scales,
                                                  int next) {
    constexpr int kPartN = Scales::kPartN;
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
        if constexpr (kScaled<Scales>) {
          if (block == 0 && first == 0) scales.HandOver(next);
        }
        ptx::WgmmaWait<0>();
        ptx::WgmmaPin(part);
        float* const sums = &accumulators[block][first / 2];
        if constexpr (kScaled<Scales>) {
          scales.Add(part, block, first, sums);
        } else {
#pragma unroll
          for (int x = 0; x < kPartN / 2; ++x) sums[x] += part[x];
        }
      }
    }
  }

  // A step over k of a warp's 16 rows of A.
  struct SplitRows {
    uint32_t high[4];
    uint32_t low[4];
  };

  // Splits the rows of A on their way to the tensor cores, which take them from registers, and
  // multiplies a stage. The products with low numbers are added up first, while the sum is small:
  // the tensor cores truncate each sum.
  __device__ __forceinline__ void MultiplyThrice(uint32_t tile_a, uint32_t tile_b) {
    constexpr int kPartN = kConfig.part_n(), kSteps = kConfig.promoted_steps();
    static_assert(OperandA::kSteps % kSteps == 0);
    const uint64_t b_high = ptx::WgmmaMatrix(OperandB::kLayout, tile_b);
    const uint64_t b_low = b_high + kConfig.tile_b_bytes() / 16;
#pragma unroll
    for (int block = 0; block < kBlocksM; ++block) {
#pragma unroll
      for (int first_step = 0; first_step < OperandA::kSteps; first_step += kSteps) {
        SplitRows rows[kSteps];
        LoadRows(rows, tile_a + block * OperandA::kBlockBytes, first_step);
#pragma unroll
        for (int first = 0; first < kTileN; first += kPartN) {
          float part[kPartN / 2];
          ptx::WgmmaPin(part);
          PinRows(rows);
          ptx::WgmmaFence();
          const int offset = first * OperandB::kSpan / 16;
#pragma unroll
          for (int step = 0; step < kSteps; ++step) {
            const int offset_b = offset + (first_step + step) * OperandB::kAdvance / 16;
            ptx::WgmmaOfRegisters(part, rows[step].low, b_high + offset_b, step > 0);
            ptx::WgmmaOfRegisters(part, rows[step].high, b_low + offset_b, true);
          }
#pragma unroll
          for (int step = 0; step < kSteps; ++step) {
            const int offset_b = offset + (first_step + step) * OperandB::kAdvance / 16;
            ptx::WgmmaOfRegisters(part, rows[step].high, b_high + offset_b, true);
          }
          ptx::WgmmaCommit();
          ptx::WgmmaWait<0>();
          ptx::WgmmaPin(part);
          PinRows(rows);
          float* const sums = &accumulators[block][first / 2];
#pragma unroll
          for (int x = 0; x < kPartN / 2; ++x) sums[x] += part[x];
        }
      }
    }
  }

  // Loads and splits rows from step `first` over k on. `block`: the address of 64 rows in shared
  // memory.
  template <int kCount>
  __device__ __forceinline__ static void LoadRows(SplitRows (&rows)[kCount], uint32_t block,
                                                  int first) {
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int step = 0; step < kCount; ++step) {
      uint32_t loaded[4];
      ptx::LdMatrixX4(loaded, block + MatrixRowOfBox(warp, lane, first + step));
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        const HighLow split = Split(loaded[x]);
        rows[step].high[x] = split.high;
        rows[step].low[x] = split.low;
      }
    }
  }

  template <int kCount>
  __device__ static void PinRows(SplitRows (&rows)[kCount]) {
#pragma unroll
    for (int step = 0; step < kCount; ++step) {
      ptx::WgmmaPin(rows[step].high);
      ptx::WgmmaPin(rows[step].low);
    }
  }

  // Tells each block that loads a part of the stage that this warp is done with it.
  __device__ void Free(int first_sharer) const {
    constexpr int kSharers = kConfig.sharers();
    const uint32_t lane = threadIdx.x % 32;
    if constexpr (kSharers > 1) {
      if (lane < kSharers) ptx::ArriveAt(multiplied_, first_sharer + lane);
    } else {
      if (lane == 0) ptx::Arrive(multiplied_);
    }
  }

  __device__ __forceinline__ void AddToTotals() {
#pragma unroll
    for (int block = 0; block < kBlocksM; ++block) {
#pragma unroll
      for (int x = 0; x < kRegisters; ++x) {
        totals_[block][x] += accumulators[block][x];
        accumulators[block][x] = 0;
      }
    }
  }
  __device__ __forceinline__ void AddTotals() {
#pragma unroll
    for (int block = 0; block < kBlocksM; ++block) {
#pragma unroll
      for (int x = 0; x < kRegisters; ++x) accumulators[block][x] += totals_[block][x];
    }
  }

  Register totals_[kTwoLevels ? kBlocksM : 1][kTwoLevels ? kRegisters : 1];
  uint32_t multiplied_ = 0;  // `free` of the last stage that was read; 0: none
};

}  // namespace gemm

#endif  // GEMM_HAS_WGMMA
