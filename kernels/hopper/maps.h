// Describes the matrices of a launch to TMA.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "gemm/problem.h"
#include "kernels/hopper/arguments.h"
#include "kernels/hopper/config.h"
#include "kernels/hopper/tensor_map.h"
#include "kernels/transpose/operands.h"

namespace gemm {

// An operand of a batch.
struct HopperMatrices {
  const void* data = nullptr;
  int64_t ld = 0;
  int64_t stride = 0;
  int64_t batch = 1;

  // Whether the products of a batch read the same matrix.
  bool shared() const { return batch == 1 || stride == 0; }
};

// Matrices as they are stored, in boxes of `box_lines` lines along k, or of 128 bytes of lines for
// each step of k.
inline TiledMatrices MatricesOf(const HopperMatrices& operand, DType type, Compute compute,
                                int64_t lines, int64_t k, bool along_k, int box_lines) {
  const int64_t rows = along_k ? lines : k, columns = along_k ? k : lines;
  const int64_t size = static_cast<int64_t>(SizeOf(type));
  return {.data = operand.data,
          .type = type,
          .rows = rows,
          .columns = columns,
          .pitch = rows == 1 ? PitchBytes(columns, type) : operand.ld * size,
          .count = operand.shared() ? 1 : operand.batch,
          .stride = operand.stride * size,
          .box_rows = along_k ? box_lines : 128 / static_cast<int>(size),
          .compute = compute};
}

inline absl::StatusOr<CUtensorMap> DescribeOperand(const HopperMatrices& operand, DType type,
                                                   Compute compute, int64_t lines, int64_t k,
                                                   bool along_k, int box_lines) {
  return DescribeToTma(MatricesOf(operand, type, compute, lines, k, along_k, box_lines));
}

// op(B)^T op(A)^T, whose columns are the rows of D.
inline TransposedProduct TransposeOfD(const TransposedProduct& product) {
  TransposedProduct swapped = product;
  std::swap(swapped.problem.m, swapped.problem.n);
  swapped.problem.trans_a = !product.problem.trans_b;
  swapped.problem.trans_b = !product.problem.trans_a;
  std::swap(swapped.operands.a, swapped.operands.b);
  std::swap(swapped.operands.lda, swapped.operands.ldb);
  std::swap(swapped.operands.stride_a, swapped.operands.stride_b);
  std::swap(swapped.problem.scales_a, swapped.problem.scales_b);
  std::swap(swapped.operands.scales_a, swapped.operands.scales_b);
  return swapped;
}

// The matrices of high and of low numbers of each B (split_b.h), of n rows each.
inline HopperMatrices HighAndLow(const HopperMatrices& b, int64_t n) {
  return {.data = b.data, .ld = b.ld, .stride = n * b.ld, .batch = 2 * (b.shared() ? 1 : b.batch)};
}

// The number of matrices of each operand, and of D.
struct HopperCounts {
  int64_t a = 1, b = 1, d = 1;
};

// The maps, and which operands are the same for all products, in the order in which they are
// multiplied: B and A if D's transpose is computed.
struct HopperDescription {
  HopperMaps maps;
  int step_a = 0;
  int step_b = 0;
};

template <class Variant>
absl::StatusOr<HopperDescription> DescribeHopper(const TransposedProduct& product,
                                                 HopperCounts counts) {
  constexpr HopperConfig kConfig = Variant::kConfig;
  const TransposedProduct multiplied = kConfig.swap ? TransposeOfD(product) : product;
  if (kConfig.swap) std::swap(counts.a, counts.b);
  const Problem& p = multiplied.problem;
  const Operands& o = multiplied.operands;
  const HopperMatrices of_a{o.a, o.lda, o.stride_a, counts.a};
  const HopperMatrices of_b{o.b, o.ldb, o.stride_b, counts.b};
  const auto a = DescribeOperand(of_a, p.types.a, p.types.compute, p.m, p.k, !p.trans_a,
                                 kConfig.tile_m / kConfig.cluster_n);
  if (!a.ok()) return a.status();
  HopperMatrices loaded_b = of_b;
  if (kConfig.f32x3) loaded_b = HighAndLow(of_b, p.n);
  const auto b = DescribeOperand(loaded_b, p.types.b, p.types.compute, p.n, p.k, p.trans_b,
                                 kConfig.tile_n / kConfig.cluster_m);
  if (!b.ok()) return b.status();
  const auto d =
      DescribeOperand({o.d, o.ldd, o.stride_d, counts.d}, p.types.d, Compute::kF32,
                      product.problem.m, product.problem.n, /*along_k=*/true, kConfig.box_rows());
  if (!d.ok()) return d.status();
  return HopperDescription{.maps = {.a = *a, .b = *b, .d = *d},
                           .step_a = of_a.shared() ? 0 : 1,
                           .step_b = of_b.shared() ? 0 : 1};
}

}  // namespace gemm
