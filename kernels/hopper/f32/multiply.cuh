// A thread's products: outer products of strips of op(A) and op(B) in registers.
//
// While a step of k is multiplied, the strips of the next one are loaded. If an operand lies across
// k, a thread has two strips of it, for two steps. If it lies along k, a thread has one chunk of
// four steps of each of its lines. The next chunk replaces it line by line, as soon as the last
// step has multiplied the line. So loads have most of a step's time.
#pragma once

#include <cstdint>

#include "kernels/hopper/f32/lines.h"
#include "kernels/hopper/f32/stages.cuh"
#include "kernels/hopper/pipeline.cuh"
#include "kernels/ptx/mbarrier.cuh"

namespace gemm {

// The compiler does not move it across other such loads or barriers.
__device__ __forceinline__ void LoadFour(uint32_t shared, float* four) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(four[0]), "=f"(four[1]), "=f"(four[2]), "=f"(four[3])
               : "r"(shared));
}

// A thread's strips of one operand. `Lines` is a HopperF32Lines.
template <class Lines>
class HopperF32Strips {
  static constexpr int kCount = Lines::kLines, kChunk = HopperF32Config::kChunk;

 public:
  // The element of line `i` in step `step` of a chunk.
  __device__ float At(int i, int step) const {
    return Lines::kIsAlongK ? values_[i * kChunk + step] : values_[step % 2 * kCount + i];
  }

  __device__ void LoadLine(uint32_t at_chunk, int i) {
    LoadFour(Lines::AtLine(at_chunk, i), values_ + i * kChunk);
  }
  __device__ void LoadStep(uint32_t at_chunk, int step) {
#pragma unroll
    for (int quad = 0; quad < kCount / 4; ++quad) {
      LoadFour(Lines::AtQuad(at_chunk, step, quad), values_ + step % 2 * kCount + quad * 4);
    }
  }
  __device__ void Clear() {
#pragma unroll
    for (float& value : values_) value = 0;
  }

 private:
  float values_[Lines::kIsAlongK ? kChunk * kCount : 2 * kCount];
};

template <class Variant, bool kTransA, bool kTransB>
class HopperF32Product {
  static constexpr HopperF32Config kConfig = Variant::kConfig;
  using Operands = HopperF32Operands<Variant, kTransA, kTransB>;
  using A = typename Operands::A;
  using B = typename Operands::B;
  static constexpr int kThreadM = kConfig.thread_m, kThreadN = kConfig.thread_n;
  static constexpr int kLastStep = HopperF32Config::kChunk - 1;

 public:
  float accumulators[kThreadM][kThreadN];

  __device__ explicit HopperF32Product(const HopperF32Thread<Variant>& thread)
      : origin_a_(A::Origin(thread.warp_row(), thread.lane_m())),
        origin_b_(B::Origin(thread.warp_column(), thread.lane_n())) {}

  // Accumulates `k_tiles` stages from `place` on, and moves `place` behind them.
  __device__ __forceinline__ void Multiply(const HopperF32Stages<Variant>& stages,
                                           HopperPlace<kConfig.stages>& place, int k_tiles) {
    Clear();
    int read = -1;  // the stage before
    for (int k = 0; k < k_tiles; ++k) {
      ptx::WaitForPhase(stages.full(place.stage), place.parity);
      const uint32_t a = stages.tile_a(place.stage) + origin_a_;
      const uint32_t b = stages.tile_b(place.stage) + origin_b_;
      // The last step of a chunk comes with the first loads of the next one. So the compiler sees
      // the distance from a load to its use. Before the first chunk it adds zeros.
#pragma unroll HopperF32Config::kUnrolled
      for (int chunk = 0; chunk < HopperF32Config::kChunks; ++chunk) {
        const uint32_t at_a = A::AtChunk(a, chunk), at_b = B::AtChunk(b, chunk);
        LastStep<true>(at_a, at_b);
#pragma unroll
        for (int step = 0; step < kLastStep; ++step) {
          if constexpr (!A::kIsAlongK) strips_a_.LoadStep(at_a, step + 1);
          if constexpr (!B::kIsAlongK) strips_b_.LoadStep(at_b, step + 1);
          Step(step);
        }
      }
      // The last loads from this stage may be under way. Those from the stage before are in
      // registers.
      if (k > 0) Leave(stages, read);
      read = place.stage;
      place.Next();
    }
    LastStep<false>(0, 0);
    if (kConfig.split == 1 || k_tiles > 0) Leave(stages, read);
  }

 private:
  __device__ __forceinline__ void Clear() {
#pragma unroll
    for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
      for (int j = 0; j < kThreadN; ++j) accumulators[i][j] = 0;
    }
    strips_a_.Clear();
    strips_b_.Clear();
  }

  __device__ __forceinline__ void MultiplyOne(int i, int j, int step) {
    accumulators[i][j] = fmaf(strips_a_.At(i, step), strips_b_.At(j, step), accumulators[i][j]);
  }

  __device__ __forceinline__ void Step(int step) {
#pragma unroll
    for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
      for (int j = 0; j < kThreadN; ++j) MultiplyOne(i, j, step);
    }
  }

  // The last step of a chunk. kLoad: meanwhile, the operands of the next chunk's first step are
  // read.
  template <bool kLoad>
  __device__ __forceinline__ void LastStep(uint32_t at_a, uint32_t at_b) {
    if constexpr (kLoad && !A::kIsAlongK) strips_a_.LoadStep(at_a, 0);
    if constexpr (kLoad && !B::kIsAlongK) strips_b_.LoadStep(at_b, 0);
    // If both lie along k, columns are multiplied in two halves: those of the first half are read
    // while the second is multiplied.
    constexpr int kPart = A::kIsAlongK && B::kIsAlongK ? kThreadN / 2 : kThreadN;
#pragma unroll
    for (int first = 0; first < kThreadN; first += kPart) {
      if constexpr (A::kIsAlongK || !B::kIsAlongK) {
#pragma unroll
        for (int i = 0; i < kThreadM; ++i) {
#pragma unroll
          for (int j = first; j < first + kPart; ++j) MultiplyOne(i, j, kLastStep);
          if constexpr (kLoad && A::kIsAlongK) {
            if (first + kPart == kThreadN) strips_a_.LoadLine(at_a, i);
          }
        }
        if constexpr (kLoad && B::kIsAlongK) {
#pragma unroll
          for (int j = first; j < first + kPart; ++j) strips_b_.LoadLine(at_b, j);
        }
      } else {
#pragma unroll
        for (int j = 0; j < kThreadN; ++j) {
#pragma unroll
          for (int i = 0; i < kThreadM; ++i) MultiplyOne(i, j, kLastStep);
          if constexpr (kLoad) strips_b_.LoadLine(at_b, j);
        }
      }
    }
  }

  // Called by a warp that has read the stage.
  __device__ static void Leave(const HopperF32Stages<Variant>& stages, int stage) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::Arrive(stages.free(stage));
  }

  const uint32_t origin_a_;
  const uint32_t origin_b_;
  HopperF32Strips<A> strips_a_;
  HopperF32Strips<B> strips_b_;
};

}  // namespace gemm
