// The naive kernels: each thread computes one element of D, with operands from global
// memory.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gemm/kernel.h"
#include "kernels/core/cuda_status.h"
#include "kernels/core/tile_grid.h"
#include "kernels/epilogue/epilogue.cuh"
#include "kernels/numeric/multiply_add.cuh"

namespace gemm {

// A variant of the naive kernel.
struct NaiveConfig {
  DType type = DType::kF32;  // of A, B and D
  DType accumulate = DType::kF32;
  int tile_m = 8;   // threads of a block along m
  int tile_n = 32;  // and along n: a warp reads B in one piece

  constexpr int threads() const { return tile_m * tile_n; }
};

// op(X) as element strides.
template <class Element>
struct StridedOperand {
  const Element* data;
  int64_t row_stride;
  int64_t col_stride;

  StridedOperand(const void* data, int64_t ld, bool transposed)
      : data(static_cast<const Element*>(data)),
        row_stride(transposed ? 1 : ld),
        col_stride(transposed ? ld : 1) {}
};

// An operand's element in the accumulator's type.
template <class Variant>
__device__ auto Widen(typename Variant::Operand::Type x) {
  if constexpr (Variant::kConfig.accumulate == Variant::kConfig.type) {
    return x;
  } else {
    return Variant::Operand::Load(x);
  }
}

// `Variant` has a constexpr NaiveConfig kConfig. It is a type and not the record
// itself because nvcc cannot name kernels by records of a namespace.
template <class Variant>
__global__ __launch_bounds__(Variant::kConfig.threads()) void NaiveKernel(
    const StridedOperand<typename Variant::Operand::Type> a,
    const StridedOperand<typename Variant::Operand::Type> b,
    const Epilogue<Variant::kConfig.type> epilogue, int64_t m, int64_t n, int64_t k,
    int64_t tiles_n) {
  constexpr NaiveConfig kConfig = Variant::kConfig;
  using Accumulator = typename DeviceElement<kConfig.accumulate>::Type;
  // All tiles are along one grid dimension: the other two end at 65535 blocks.
  const int64_t tile = blockIdx.x;
  const int64_t i = tile / tiles_n * kConfig.tile_m + threadIdx.y;
  const int64_t j = tile % tiles_n * kConfig.tile_n + threadIdx.x;
  if (i >= m || j >= n) return;
  const auto* a_row = a.data + i * a.row_stride;
  const auto* b_col = b.data + j * b.col_stride;
  Accumulator accumulator = 0;
  for (int64_t p = 0; p < k; ++p) {
    accumulator = MultiplyAdd(Widen<Variant>(*a_row), Widen<Variant>(*b_col), accumulator);
    a_row += a.col_stride;
    b_col += b.row_stride;
  }
  epilogue.Store(DeviceElement<kConfig.accumulate>::Load(accumulator), i, j);
}

template <class Variant>
absl::Status LaunchNaive(const Launch& launch) {
  constexpr NaiveConfig kConfig = Variant::kConfig;
  using Element = typename Variant::Operand::Type;
  const Problem& p = launch.problem;
  const Operands& o = launch.operands;
  const absl::StatusOr<TileGrid> grid = MakeTileGrid(p, kConfig.tile_m, kConfig.tile_n);
  if (!grid.ok()) return grid.status();
  const dim3 block(kConfig.tile_n, kConfig.tile_m);
  NaiveKernel<Variant><<<grid->blocks(), block, 0, launch.stream>>>(
      StridedOperand<Element>(o.a, o.lda, p.trans_a),
      StridedOperand<Element>(o.b, o.ldb, p.trans_b), MakeEpilogue<kConfig.type>(p, o), p.m, p.n,
      p.k, grid->tiles_n);
  return CudaStatus(cudaGetLastError(), "launch of a naive kernel");
}

}  // namespace gemm
