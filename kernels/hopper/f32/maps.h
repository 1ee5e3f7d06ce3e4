// Describes the operands of f32 on CUDA cores to TMA.
#pragma once

#include "absl/status/statusor.h"
#include "kernels/hopper/f32/config.h"
#include "kernels/hopper/f32/row.h"
#include "kernels/hopper/maps.h"

namespace gemm {

// An operand in boxes of a tile: of rows of 128 bytes along k, swizzled, or of a row for each step
// of k.
inline absl::StatusOr<CUtensorMap> DescribeF32Operand(const HopperMatrices& operand, int64_t lines,
                                                      int64_t k, bool along_k, int tile_lines) {
  TiledMatrices matrices =
      MatricesOf(operand, DType::kF32, Compute::kF32, lines, k, along_k, tile_lines);
  if (!along_k) matrices.box_columns = tile_lines;
  return DescribeToTma(matrices);
}

inline absl::StatusOr<HopperDescription> DescribeHopperF32(const HopperF32Config& config,
                                                           const TransposedProduct& product) {
  const Problem& p = product.problem;
  const Operands& o = product.operands;
  const HopperMatrices of_a{o.a, o.lda, o.stride_a, p.batch};
  const HopperMatrices of_b{o.b, o.ldb, o.stride_b, p.batch};
  const auto a = DescribeF32Operand(of_a, p.m, p.k, !p.trans_a, config.tile_m);
  if (!a.ok()) return a.status();
  const auto b = DescribeF32Operand(of_b, p.n, p.k, p.trans_b, config.tile_n);
  if (!b.ok()) return b.status();
  return HopperDescription{.maps = {.a = *a, .b = *b, .d = {}},
                           .step_a = of_a.shared() ? 0 : 1,
                           .step_b = of_b.shared() ? 0 : 1};
}

}  // namespace gemm
