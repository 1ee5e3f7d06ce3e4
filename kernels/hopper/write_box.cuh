// Writes accumulators to a box of D in shared memory.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/epilogue/epilogue.cuh"
#include "kernels/hopper/accumulators.cuh"
#include "kernels/hopper/box.h"
#include "kernels/hopper/store_boxes.cuh"
#include "kernels/ptx/warpgroup.cuh"

namespace gemm {

template <DType kD, class Register>
__device__ __forceinline__ uint32_t RoundedPair(const Register* accumulators, int x) {
  using Element = DeviceElement<kD>;
  const float2 pair = AccumulatorPair(accumulators, x);
  const typename Element::Type rounded[2] = {Element::Store(pair.x), Element::Store(pair.y)};
  uint32_t word;
  memcpy(&word, rounded, sizeof(word));
  return word;
}
template <DType kD>
__device__ __forceinline__ uint32_t RoundedPair(const uint32_t* accumulators, int x) {
  static_assert(kD == DType::kF16);
  return accumulators[x];
}

// Writes kColumns columns of accumulators, times alpha, to a box of 16-bit elements: 64 columns, or
// with kSwap as many as a box has rows.
template <DType kD, bool kOne, bool kSwap, int kColumns, class Register>
__device__ __forceinline__ void WriteScaled16(const Register* accumulators, uint32_t box,
                                              const Epilogue<kD>& epilogue,
                                              const WarpgroupThread& thread) {
#pragma unroll
  for (int pair = 0; pair < kColumns / 16; ++pair) {  // of 8 columns each
    const Register* const acc = accumulators + pair * 4 * kPairRegisters<Register>;
    uint32_t words[4];
#pragma unroll
    for (int x = 0; x < 4; ++x) {
      if constexpr (kOne) {
        words[x] = RoundedPair<kD>(acc, x);
      } else {
        const float2 two = AccumulatorPair(acc, x);
        words[x] = epilogue.ScaledPair(two.x, two.y);
      }
    }
    if constexpr (kSwap) {
      ptx::StMatrixX4Transposed(box + TransposedRowOfBox(thread.warp(), thread.lane(), pair),
                                words);
    } else {
      ptx::StMatrixX4(box + MatrixRowOfBox(thread.warp(), thread.lane(), pair), words);
    }
  }
}

// Writes 32 columns of accumulators, times `scale`, to a box of floats.
template <class Register>
__device__ __forceinline__ void WriteFloats(const Register* accumulators, uint32_t box, float scale,
                                            const WarpgroupThread& thread) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 pair = AccumulatorPair(accumulators, 2 * j + half);
      const uint32_t to = box + PairOfBox(thread.warp(), thread.lane(), half, j);
      asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(pair.x * scale),
                   "f"(pair.y * scale)
                   : "memory");
    }
  }
}

// The same for integers, without a scale.
__device__ __forceinline__ void WriteIntegers(const int32_t* accumulators, uint32_t box,
                                              const WarpgroupThread& thread) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int32_t* const pair = accumulators + 2 * (2 * j + half);
      const uint32_t to = box + PairOfBox(thread.warp(), thread.lane(), half, j);
      asm volatile("st.shared.v2.s32 [%0], {%1, %2};" ::"r"(to), "r"(pair[0]), "r"(pair[1])
                   : "memory");
    }
  }
}

// Writes the transpose of kColumns columns to a box of floats. The box has 32 columns, from 32
// `across` on, which are those of half of the warps.
template <int kColumns, class Register>
__device__ __forceinline__ void WriteFloatsTransposed(const Register* accumulators, uint32_t box,
                                                      int across, float scale,
                                                      const WarpgroupThread& thread) {
  if (thread.warp() / 2 != across) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j) {
      const float2 pair = AccumulatorPair(accumulators, 2 * j + half);
#pragma unroll
      for (int second = 0; second < 2; ++second) {
        const uint32_t to = box + TransposedOfBox(thread.warp(), thread.lane(), half, j, second);
        asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"((second ? pair.y : pair.x) * scale)
                     : "memory");
      }
    }
  }
}

// The same for integers, without a scale.
template <int kColumns>
__device__ __forceinline__ void WriteIntegersTransposed(const int32_t* accumulators, uint32_t box,
                                                        int across, const WarpgroupThread& thread) {
  if (thread.warp() / 2 != across) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j) {
#pragma unroll
      for (int second = 0; second < 2; ++second) {
        const uint32_t to = box + TransposedOfBox(thread.warp(), thread.lane(), half, j, second);
        asm volatile("st.shared.s32 [%0], %1;" ::"r"(to),
                     "r"(accumulators[2 * (2 * j + half) + second])
                     : "memory");
      }
    }
  }
}

}  // namespace gemm
