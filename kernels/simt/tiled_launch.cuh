// Makes rows of the catalogue from a table of thread-tiled variants.
#pragma once

#include "kernels/core/cuda_status.h"
#include "kernels/core/tile_bands.h"
#include "kernels/core/tile_grid.h"
#include "kernels/simt/tiled.cuh"
#include "kernels/simt/tiled_variants.h"
#include "kernels/transpose/operands.h"

namespace gemm {

// Columns of D in a band of tiles, where the caller leaves the choice open.
inline constexpr int64_t kTiledBand = 2048;

template <class Variant>
absl::Status LaunchTiled(const Launch& launch) {
  constexpr TiledConfig kConfig = Variant::kLayout.config;
  using Element = typename Variant::Element;
  const absl::StatusOr<TileGrid> grid =
      MakeTileGrid(launch.problem, kConfig.block_m, kConfig.block_n);
  if (!grid.ok()) return grid.status();
  const absl::StatusOr<TransposedProduct> transposed = TransposeOperands(launch, {});
  if (!transposed.ok()) return transposed.status();
  const Problem& p = transposed->problem;
  const Operands& o = transposed->operands;
  const TiledOperands<Element> operands{.a = static_cast<const Element*>(o.a),
                                        .lda = o.lda,
                                        .b = static_cast<const Element*>(o.b),
                                        .ldb = o.ldb,
                                        .m = p.m,
                                        .n = p.n,
                                        .k = p.k};
  const int64_t swizzle = launch.params[0] == kOwnChoice ? kTiledBand : launch.params[0];
  TiledKernel<Variant><<<grid->blocks(), kConfig.threads(), 0, launch.stream>>>(
      operands, MakeEpilogue<kConfig.type>(p, o), grid->tiles_m, grid->tiles_n,
      BandTiles(swizzle, grid->tiles_n, kConfig.block_n));
  return CudaStatus(cudaGetLastError(), "launch of a thread-tiled kernel");
}

inline constexpr Types kTiledF32[] = {{DType::kF32, DType::kF32, DType::kF32, Compute::kF32}};
inline constexpr Types kTiledF16[] = {{DType::kF16, DType::kF16, DType::kF16, Compute::kF16}};

template <class Variant>
constexpr Kernel TiledKernelRow(const TiledRow& row) {
  const TiledConfig& config = row.config;
  const bool f32 = config.type == DType::kF32;
  return Kernel{
      .name = row.name,
      .family = "simt",
      .summary = row.summary,
      .types = f32 ? absl::MakeConstSpan(kTiledF32) : absl::MakeConstSpan(kTiledF16),
      .tile_m = config.block_m,
      .tile_n = config.block_n,
      .tile_k = config.block_k,
      .stages = config.buffers,
      .threads = config.threads(),
      .shared_memory_bytes = sizeof(SharedKTile<Variant>) * static_cast<size_t>(config.buffers),
      .params = kBandParams,
      .auto_rank = 20,
      .workspace_bytes = TransposeScratchBytesFor<false, false>,
      .launch = LaunchTiled<Variant>,
  };
}

}  // namespace gemm
