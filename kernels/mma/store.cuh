// Stores a warp's accumulators to D.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "kernels/epilogue/epilogue.cuh"
#include "kernels/mma/warp_product.cuh"

namespace gemm::mma {

// Transposes a 4 x 4 matrix. Lane x of a quad holds column x.
template <class Value>
__device__ __forceinline__ void TransposeInQuad(Value (&v)[4], int lane) {
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2) {
    const bool upper = (lane & bit) != 0;
#pragma unroll
    for (int x = 0; x < 4; ++x) {
      if (x & bit) continue;
      // Each lane keeps the one of two entries that is in place.
      const Value got = __shfl_xor_sync(0xffffffffu, upper ? v[x] : v[x | bit], bit);
      (upper ? v[x] : v[x | bit]) = got;
    }
  }
}

// The two accumulators of a lane in row `half` * 8 + lane / 4 of an mma tile: as in
// registers, and widened to floats.
__device__ __forceinline__ uint32_t PairOf(const uint32_t (&accumulators)[2], int half) {
  return accumulators[half];
}
__device__ __forceinline__ float2 PairOf(const float (&accumulators)[4], int half) {
  return {accumulators[2 * half], accumulators[2 * half + 1]};
}
__device__ __forceinline__ float2 Widen(uint32_t pair) {
  return __half22float2(*reinterpret_cast<const __half2*>(&pair));
}
__device__ __forceinline__ float2 Widen(const float2& pair) { return pair; }

// A lane's part of the warp's tile of D: kRows rows, 8 apart, from (i, j) on. In each
// row it has a pair in each mma tile.
template <class Variant>
struct LaneTile {
  static constexpr Config kConfig = Variant::kConfig;
  static constexpr int kRows = kConfig.tiles_m * 2;
  static constexpr int kColumns = kConfig.tiles_n;
  using Pair = std::conditional_t<kConfig.accumulate == DType::kF32, float2, uint32_t>;
  static constexpr bool kCollective = kConfig.store == Store::kCollective;
  static_assert(!kCollective || kColumns == 4);

  const WarpProduct<Variant>& product;
  const Epilogue<DType::kF16>& epilogue;
  int64_t i;
  int64_t j;
  int lane;

  // For a tile that lies in D as a whole and an epilogue that is alpha alone.
  __device__ void StoreScaled() const {
    const float alpha = epilogue.alpha;
    if constexpr (std::is_same_v<Pair, uint32_t>) {
      if (alpha == 1) return StorePairs([](uint32_t accumulators) { return accumulators; });
    }
    StorePairs([alpha](const Pair& pair) {
      const float2 accumulators = Widen(pair);
      const __half2 scaled = __floats2half2_rn(alpha * accumulators.x, alpha * accumulators.y);
      return *reinterpret_cast<const uint32_t*>(&scaled);
    });
  }

  // The general case. The loops are not unrolled, since an epilogue is many instructions.
  // Instead the accumulators move to the registers that the loop's body reads.
  __device__ void StoreGeneral(int64_t m, int64_t n) const {
    Pair rows[kRows][kColumns];
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
#pragma unroll
      for (int x = 0; x < kColumns; ++x) {
        rows[row][x] = PairOf(product.accumulators[row / 2][x], row % 2);
      }
    }
#pragma unroll 1
    for (int row = 0; row < kRows; ++row) {
      StoreRow(rows[0], i + row * 8, m, n);
#pragma unroll
      for (int next = 1; next < kRows; ++next) {
#pragma unroll
        for (int x = 0; x < kColumns; ++x) rows[next - 1][x] = rows[next][x];
      }
    }
  }

 private:
  template <class Rounded>
  __device__ void StorePairs(const Rounded& rounded) const {
    __half* d = epilogue.d + i * epilogue.ldd + j;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      uint32_t pairs[kColumns];
#pragma unroll
      for (int x = 0; x < kColumns; ++x) {
        pairs[x] = rounded(PairOf(product.accumulators[row / 2][x], row % 2));
      }
      if constexpr (kCollective) {
        TransposeInQuad(pairs, lane);
        StoreWord(reinterpret_cast<uint4*>(d), uint4{pairs[0], pairs[1], pairs[2], pairs[3]});
      } else {
#pragma unroll
        for (int x = 0; x < kColumns; ++x) {
          *reinterpret_cast<uint32_t*>(d + x * Config::kMmaN) = pairs[x];
        }
      }
      d += 8 * epilogue.ldd;
    }
  }

  __device__ void StoreRow(Pair (&pairs)[kColumns], int64_t at_i, int64_t m, int64_t n) const {
    if constexpr (kCollective) {
      float even[4], odd[4];
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        const float2 pair = Widen(pairs[x]);
        even[x] = pair.x;
        odd[x] = pair.y;
      }
      TransposeInQuad(even, lane);
      TransposeInQuad(odd, lane);
      if (at_i >= m || j >= n) return;
      epilogue.StoreRun<8>({even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]},
                           at_i, j, n);
    } else {
#pragma unroll 1
      for (int x = 0; x < kColumns; ++x) {
        const int64_t at_j = j + x * Config::kMmaN;
        const float2 pair = Widen(pairs[0]);
        if (at_i < m && at_j < n) epilogue.StoreRun<2>({pair.x, pair.y}, at_i, at_j, n);
#pragma unroll
        for (int next = 1; next < kColumns; ++next) pairs[next - 1] = pairs[next];
      }
    }
  }
};

// Writes the elements of a warp's tile that lie in the m x n of D. The tile begins at
// (first_i, first_j). `inside`: the block's tile lies in D as a whole.
template <class Variant>
__device__ void StoreWarpTile(const WarpProduct<Variant>& product,
                              const Epilogue<DType::kF16>& epilogue, int64_t first_i,
                              int64_t first_j, int64_t m, int64_t n, bool inside, int lane) {
  constexpr int kLaneColumns = LaneTile<Variant>::kCollective ? Config::kMmaN : 2;
  const LaneTile<Variant> tile{product, epilogue, first_i + lane / 4,
                               first_j + lane % 4 * kLaneColumns, lane};
  if (inside && epilogue.OnlyScales()) {
    tile.StoreScaled();
  } else {
    tile.StoreGeneral(m, n);
  }
}

}  // namespace gemm::mma
