// Stores a warp's accumulators to D. WMMA does not specify which elements of a fragment a
// thread holds, so they go through shared memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/epilogue/epilogue.cuh"
#include "kernels/wmma/warp_product.cuh"

namespace gemm::wmma {

// Stores the warp's part of D, which begins at element (first_i, first_j) of m x n.
// `strip` is the warp's own shared memory.
template <class Variant>
__device__ void StoreWarpTile(const WarpProduct<Variant>& product,
                              const Epilogue<Variant::kConfig.type>& epilogue, std::byte* strip,
                              int64_t first_i, int64_t first_j, int64_t m, int64_t n) {
  constexpr Config kConfig = Variant::kConfig;
  constexpr Panel kStrip = kConfig.strip();
  using AccumulatorElement = typename WarpProduct<Variant>::AccumulatorElement;
  constexpr int kRun = static_cast<int>(kRowAlignment) / kConfig.element_bytes();
  constexpr int kRowRuns = kConfig.warp_n() / kRun;
  static_assert(kConfig.wmma_n % kRun == 0, "a run lies within a fragment");
  struct alignas(kUnitBytes) AccumulatorRun {
    AccumulatorElement accumulators[kRun];
  };
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool plain = epilogue.OnlyScales() && n % kRun == 0;
#pragma unroll
  for (int i = 0; i < kConfig.tiles_m; ++i) {
#pragma unroll
    for (int j = 0; j < kConfig.tiles_n; ++j) {
      std::byte* const tile = strip + kStrip.Offset(0, j * kConfig.wmma_n);
      if constexpr (kConfig.type == DType::kF32) {
        ptx::WmmaStore(product.accumulators[i][j], ptx::SharedAddress(tile), kStrip.ld());
      } else {
        nvcuda::wmma::store_matrix_sync(reinterpret_cast<AccumulatorElement*>(tile),
                                        product.accumulators[i][j], kStrip.ld(),
                                        nvcuda::wmma::mem_row_major);
      }
    }
    __syncwarp();
#pragma unroll 1
    for (int r = lane; r < kConfig.wmma_m * kRowRuns; r += 32) {
      const int row = r / kRowRuns, column = r % kRowRuns * kRun;
      const int64_t d_i = first_i + i * kConfig.wmma_m + row, d_j = first_j + column;
      if (d_i >= m || d_j >= n) continue;
      const auto run = *reinterpret_cast<const AccumulatorRun*>(strip + kStrip.Offset(row, column));
      float accumulators[kRun];
#pragma unroll
      for (int x = 0; x < kRun; ++x) {
        accumulators[x] = DeviceElement<kConfig.accumulate>::Load(run.accumulators[x]);
      }
      if (plain) {
        epilogue.template StoreScaledRun<kRun>(accumulators, d_i, d_j);
      } else {
        epilogue.template StoreRun<kRun>(accumulators, d_i, d_j, n);
      }
    }
    __syncwarp();
  }
}

}  // namespace gemm::wmma
