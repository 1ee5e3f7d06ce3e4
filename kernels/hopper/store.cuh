// Stores a warpgroup's accumulators to D, 64 rows of 128 bytes at a time, through boxes in
// shared memory.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/epilogue/epilogue.cuh"
#include "kernels/hopper/box.h"
#include "kernels/hopper/config.h"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup.cuh"

namespace gemm {

// Calls visitor.template operator()<kD>() for the run-time type of D: f32, or the operands'.
template <DType kOperand, class Visitor>
__device__ __forceinline__ void VisitHopperOutput(DType type, const Visitor& visitor) {
  if (type == DType::kF32) {
    visitor.template operator()<DType::kF32>();
  } else {
    visitor.template operator()<kOperand>();
  }
}

// A thread's place in its warpgroup.
struct WarpgroupThread {
  int index;    // 0 to 127
  int barrier;  // of its warpgroup

  __device__ int warp() const { return index / 32; }
  __device__ int lane() const { return index % 32; }
};

// Where a box of D begins.
struct BoxOfD {
  int row;
  int column;
};

// The boxes of a warpgroup: a ring of two batches, or one batch.
template <int kBoxes>
class StoreBoxes {
 public:
  __device__ StoreBoxes(uint32_t shared, const WarpgroupThread& thread)
      : shared_(shared), thread_(thread) {}

  // For a D of kParts boxes: how many leave together.
  template <int kParts>
  static constexpr int kBatch = kBoxes >= kParts ? kParts : kBoxes / 2;

  // The first box of the next batch, when the copies out of it are done.
  template <int kSize>
  __device__ __forceinline__ uint32_t Next() {
    constexpr bool kOneBatch = 2 * kSize > kBoxes;
    if (thread_.index == 0) ptx::StoreBoxWaitRead<kOneBatch ? 0 : 1>();
    ptx::WarpgroupBarrier(thread_.barrier);
    if (!kOneBatch) first_ = kSize - first_;
    return shared_ + first_ * HopperConfig::kBoxBytes;
  }

  // All threads have written the batch: `copy(shared)` copies it.
  template <class Copy>
  __device__ __forceinline__ void Leave(const Copy& copy) {
    ptx::FenceForStoreBox();
    ptx::WarpgroupBarrier(thread_.barrier);
    if (thread_.index == 0) {
      copy(shared_ + first_ * HopperConfig::kBoxBytes);
      ptx::StoreBoxCommit();
    }
  }

  // Waits until all copies have read the boxes.
  __device__ void Finish() {
    if (thread_.index == 0) ptx::StoreBoxWaitRead<0>();
  }

 private:
  const uint32_t shared_;
  const WarpgroupThread thread_;
  int first_ = 0;  // box of the batch
};

template <DType kD>
__device__ __forceinline__ uint32_t RoundedPair(float low, float high) {
  using Element = DeviceElement<kD>;
  const typename Element::Type pair[2] = {Element::Store(low), Element::Store(high)};
  uint32_t word;
  memcpy(&word, pair, sizeof(word));
  return word;
}

// Writes 64 columns of accumulators, times alpha, to a box of 16-bit elements.
template <DType kD, bool kOne>
__device__ __forceinline__ void WriteScaled16(const float* accumulators, uint32_t box,
                                              const Epilogue<kD>& epilogue,
                                              const WarpgroupThread& thread) {
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {  // of 8 columns each
    const float* const acc = accumulators + pair * 8;
    uint32_t words[4];
#pragma unroll
    for (int x = 0; x < 4; ++x) {
      words[x] = kOne ? RoundedPair<kD>(acc[2 * x], acc[2 * x + 1])
                      : epilogue.ScaledPair(acc[2 * x], acc[2 * x + 1]);
    }
    ptx::StMatrixX4(box + MatrixRowOfBox(thread.warp(), thread.lane(), pair), words);
  }
}

// Writes 32 columns of accumulators, times `scale`, to a box of floats.
__device__ __forceinline__ void WriteFloats(const float* accumulators, uint32_t box, float scale,
                                            const WarpgroupThread& thread) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float* const acc = accumulators + 4 * j + 2 * half;
      const uint32_t to = box + PairOfBox(thread.warp(), thread.lane(), half, j);
      asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(acc[0] * scale),
                   "f"(acc[1] * scale)
                   : "memory");
    }
  }
}

// Stores the elements of D that a box of accumulators makes, by the whole epilogue.
template <DType kD>
__device__ __forceinline__ void StoreFinished(uint32_t box, const Epilogue<kD>& epilogue,
                                              const BoxOfD& at, int m, int n,
                                              const WarpgroupThread& thread) {
  constexpr int kRun = static_cast<int>(kRowAlignment / SizeOf(kD));
  constexpr int kRunsPerRow = 32 / kRun;
#pragma unroll 1
  for (int run = thread.index; run < HopperConfig::kBoxRows * kRunsPerRow;
       run += ptx::kWarpgroupThreads) {
    const int row = run / kRunsPerRow, column = run % kRunsPerRow * kRun;
    if (at.row + row >= m || at.column + column >= n) continue;
    float accumulators[kRun];
#pragma unroll
    for (int quad = 0; quad < kRun / 4; ++quad) {
      asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(accumulators[4 * quad]), "=f"(accumulators[4 * quad + 1]),
                     "=f"(accumulators[4 * quad + 2]), "=f"(accumulators[4 * quad + 3])
                   : "r"(box + ChunkOfBox(row, column / 4 + quad))
                   : "memory");
    }
    epilogue.template StoreRun<kRun>(accumulators, at.row + row, at.column + column, n);
  }
}

// Stores alpha times the accumulators, from `at` on; kOne: alpha is 1. Requires OnlyScales(), and
// rows of D that end with a chunk.
template <DType kD, bool kOne, int kBlocks, int kCount, int kBoxes>
__device__ __forceinline__ void StoreScaled(const float (&accumulators)[kBlocks][kCount],
                                            StoreBoxes<kBoxes>& boxes, const CUtensorMap* map,
                                            const Epilogue<kD>& epilogue, const BoxOfD& at,
                                            const WarpgroupThread& thread) {
  constexpr int kBoxColumns = HopperConfig::kPanelBytes / static_cast<int>(SizeOf(kD));
  constexpr int kRowParts = 2 * kCount / kBoxColumns, kParts = kBlocks * kRowParts;
  constexpr int kBatch = StoreBoxes<kBoxes>::template kBatch<kParts>;
#pragma unroll
  for (int first = 0; first < kParts; first += kBatch) {
    const uint32_t batch = boxes.template Next<kBatch>();
#pragma unroll
    for (int part = first; part < first + kBatch && part < kParts; ++part) {
      const float* const acc = &accumulators[part / kRowParts][part % kRowParts * kBoxColumns / 2];
      const uint32_t box = batch + (part - first) * HopperConfig::kBoxBytes;
      if constexpr (kD == DType::kF32) {
        WriteFloats(acc, box, epilogue.alpha, thread);
      } else {
        WriteScaled16<kD, kOne>(acc, box, epilogue, thread);
      }
    }
    boxes.Leave([&](uint32_t shared) {
#pragma unroll
      for (int part = first; part < first + kBatch && part < kParts; ++part) {
        ptx::StoreBox(map, at.column + part % kRowParts * kBoxColumns,
                      at.row + part / kRowParts * 64,
                      shared + (part - first) * HopperConfig::kBoxBytes);
      }
    });
  }
}

// Stores what the whole epilogue makes of the accumulators. Its code is long: it is there once,
// and a branch finds the accumulators.
template <DType kOperand, int kBlocks, int kCount, int kBoxes>
__device__ __forceinline__ void StoreAnyEpilogue(const float (&accumulators)[kBlocks][kCount],
                                                 StoreBoxes<kBoxes>& boxes,
                                                 const Epilogue<DType::kF32>& epilogue,
                                                 DType output, const BoxOfD& at, int m, int n,
                                                 const WarpgroupThread& thread) {
  constexpr int kParts = 2 * kCount / 32;  // of a row
#pragma unroll 1
  for (int part = 0; part < kBlocks * kParts; ++part) {
    const uint32_t box = boxes.template Next<1>();
#pragma unroll
    for (int known = 0; known < kBlocks * kParts; ++known) {
      if (known == part) {
        WriteFloats(&accumulators[known / kParts][known % kParts * 16], box, 1, thread);
      }
    }
    ptx::WarpgroupBarrier(thread.barrier);
    const BoxOfD place{at.row + part / kParts * 64, at.column + part % kParts * 32};
    VisitHopperOutput<kOperand>(output, [&]<DType kD>() {
      StoreFinished(box, Retyped<kD>(epilogue), place, m, n, thread);
    });
  }
}

}  // namespace gemm
