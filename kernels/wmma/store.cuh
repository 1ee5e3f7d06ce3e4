// From a warp's sums to D. Which elements of a fragment a thread holds is not
// specified, so the sums go through shared memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/epilogue/epilogue.cuh"
#include "kernels/wmma/warp_product.cuh"

namespace gemm::wmma {

// Stores the warp's part of D, which begins at element (first_i, first_j) of
// m x n. `strip` is the warp's own.
template <class Variant>
__device__ void StoreWarpTile(const WarpProduct<Variant>& product,
                              const Epilogue<Variant::kConfig.type>& epilogue, std::byte* strip,
                              int64_t first_i, int64_t first_j, int64_t m, int64_t n) {
  constexpr Config kConfig = Variant::kConfig;
  constexpr Panel kStrip = kConfig.strip();
  using Sum = typename WarpProduct<Variant>::Sum;
  constexpr int kRun = static_cast<int>(kRowAlignment) / kConfig.element_bytes();
  constexpr int kRowRuns = kConfig.warp_n() / kRun;
  static_assert(kConfig.wmma_n % kRun == 0, "a run lies within a fragment");
  struct alignas(kUnitBytes) SumRun {
    Sum sums[kRun];
  };
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool plain = epilogue.OnlyScales() && n % kRun == 0;
#pragma unroll
  for (int i = 0; i < kConfig.tiles_m; ++i) {
#pragma unroll
    for (int j = 0; j < kConfig.tiles_n; ++j) {
      nvcuda::wmma::store_matrix_sync(
          reinterpret_cast<Sum*>(strip + kStrip.Offset(0, j * kConfig.wmma_n)), product.sums[i][j],
          kStrip.ld(), nvcuda::wmma::mem_row_major);
    }
    __syncwarp();
#pragma unroll 1
    for (int r = lane; r < kConfig.wmma_m * kRowRuns; r += 32) {
      const int row = r / kRowRuns, column = r % kRowRuns * kRun;
      const int64_t d_i = first_i + i * kConfig.wmma_m + row, d_j = first_j + column;
      if (d_i >= m || d_j >= n) continue;
      const auto run = *reinterpret_cast<const SumRun*>(strip + kStrip.Offset(row, column));
      float sums[kRun];
#pragma unroll
      for (int x = 0; x < kRun; ++x) sums[x] = DeviceElement<kConfig.accumulate>::Load(run.sums[x]);
      if (plain) {
        epilogue.template StoreScaledRun<kRun>(sums, d_i, d_j);
      } else {
        epilogue.template StoreRun<kRun>(sums, d_i, d_j, n);
      }
    }
    __syncwarp();
  }
}

}  // namespace gemm::wmma
