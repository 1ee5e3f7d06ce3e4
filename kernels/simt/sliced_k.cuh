// The sliced-k kernels: a block computes a square tile of D, each thread one element, from
// square k-tiles of A and B in shared memory.
#pragma once

#include <cstdint>

#include "gemm/kernel.h"
#include "kernels/core/cuda_status.h"
#include "kernels/core/tile_grid.h"
#include "kernels/epilogue/epilogue.cuh"
#include "kernels/numeric/multiply_add.cuh"
#include "kernels/transpose/operands.h"

namespace gemm {

// A variant of the sliced-k kernel.
struct SlicedKConfig {
  DType type = DType::kF32;  // of A, B, D and the accumulator
  int tile = 32;             // a warp is along n: it reads B in one piece

  constexpr int threads() const { return tile * tile; }
};

// `Variant` has a constexpr SlicedKConfig kConfig. A is m x k, B is k x n.
template <class Variant>
__global__ __launch_bounds__(Variant::kConfig.threads()) void SlicedKKernel(
    const typename Variant::Operand::Type* a, int64_t lda, const typename Variant::Operand::Type* b,
    int64_t ldb, const Epilogue<Variant::kConfig.type> epilogue, int64_t m, int64_t n, int64_t k,
    int64_t tiles_n) {
  constexpr int kTile = Variant::kConfig.tile;
  using Element = typename Variant::Operand::Type;
  __shared__ Element a_tile[kTile][kTile];
  __shared__ Element b_tile[kTile][kTile];
  const int row = threadIdx.y, col = threadIdx.x;
  const int64_t i = blockIdx.x / tiles_n * kTile + row;
  const int64_t j = blockIdx.x % tiles_n * kTile + col;
  const Element* a_next = a + i * lda + col;
  const Element* b_next = b + row * ldb + j;
  Element accumulator = 0;
  for (int64_t first = 0; first < k; first += kTile) {
    a_tile[row][col] = i < m && first + col < k ? *a_next : Element(0);
    b_tile[row][col] = j < n && first + row < k ? *b_next : Element(0);
    a_next += kTile;
    b_next += kTile * ldb;
    __syncthreads();
#pragma unroll
    for (int p = 0; p < kTile; ++p) {
      accumulator = MultiplyAdd(a_tile[row][p], b_tile[p][col], accumulator);
    }
    __syncthreads();
  }
  if (i < m && j < n) epilogue.Store(Variant::Operand::Load(accumulator), i, j);
}

template <class Variant>
absl::Status LaunchSlicedK(const Launch& launch) {
  constexpr SlicedKConfig kConfig = Variant::kConfig;
  using Element = typename Variant::Operand::Type;
  const absl::StatusOr<TileGrid> grid = MakeTileGrid(launch.problem, kConfig.tile, kConfig.tile);
  if (!grid.ok()) return grid.status();
  const absl::StatusOr<TransposedProduct> transposed = TransposeOperands(launch, {});
  if (!transposed.ok()) return transposed.status();
  const Problem& p = transposed->problem;
  const Operands& o = transposed->operands;
  SlicedKKernel<Variant><<<grid->blocks(), dim3(kConfig.tile, kConfig.tile), 0, launch.stream>>>(
      static_cast<const Element*>(o.a), o.lda, static_cast<const Element*>(o.b), o.ldb,
      MakeEpilogue<kConfig.type>(p, o), p.m, p.n, p.k, grid->tiles_n);
  return CudaStatus(cudaGetLastError(), "launch of a sliced-k kernel");
}

}  // namespace gemm
