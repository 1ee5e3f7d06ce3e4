// Makes rows of the catalogue from a table of WMMA variants.
#pragma once

#include <iterator>

#include "kernels/core/cuda_status.h"
#include "kernels/core/rows.h"
#include "kernels/core/shared_memory.h"
#include "kernels/core/tile_bands.h"
#include "kernels/core/tile_grid.h"
#include "kernels/transpose/operands.h"
#include "kernels/wmma/kernel.cuh"
#include "kernels/wmma/name.h"

namespace gemm::wmma {

// A variant as a type: nvcc cannot name kernels by records of a namespace. `Table`
// has a constexpr Config kConfigs[].
template <class Table, size_t kIndex>
struct TableVariant {
  static constexpr Config kConfig = Table::kConfigs[kIndex];
  static constexpr NameText kName = WmmaName(kConfig);
  static constexpr SummaryText kSummary = WmmaSummary(kConfig);
};

constexpr Compute ComputeOf(const Config& config) {
  if (config.type == DType::kF32) return Compute::kTF32;
  return config.accumulate == DType::kF32 ? Compute::kF32 : Compute::kF16;
}

template <DType kType, Compute kCompute>
inline constexpr Types kTypes[] = {{kType, kType, kType, kCompute}};

template <class Variant>
absl::Status LaunchWmma(const Launch& launch) {
  constexpr Config kConfig = Variant::kConfig;
  constexpr int kDynamicBytes = kConfig.dynamic_shared ? kConfig.shared_bytes() : 0;
  const absl::Status allowed = AllowSharedMemory<WmmaKernel<Variant>>(kDynamicBytes);
  if (!allowed.ok()) return allowed;
  const absl::StatusOr<TransposedProduct> transposed = TransposeOperands(launch, {});
  if (!transposed.ok()) return transposed.status();
  const Problem& p = transposed->problem;
  const Operands& o = transposed->operands;
  const absl::StatusOr<TileGrid> grid = MakeTileGrid(p, kConfig.tile_m(), kConfig.tile_n());
  if (!grid.ok()) return grid.status();
  const int64_t swizzle = kConfig.order == Order::kBanded ? launch.params[0] : 0;
  const Arguments<kConfig.type> arguments{
      .a = {.data = static_cast<const std::byte*>(o.a), .pitch = o.lda * kConfig.element_bytes()},
      .b = {.data = static_cast<const std::byte*>(o.b), .pitch = o.ldb * kConfig.element_bytes()},
      .epilogue = MakeEpilogue<kConfig.type>(p, o),
      .m = p.m,
      .n = p.n,
      .k = p.k,
      .tiles_m = grid->tiles_m,
      .tiles_n = grid->tiles_n,
      .band = BandTiles(swizzle, grid->tiles_n, kConfig.tile_n()),
  };
  WmmaKernel<Variant>
      <<<grid->blocks(), kConfig.threads(), kDynamicBytes, launch.stream>>>(arguments);
  return CudaStatus(cudaGetLastError(), "launch of a WMMA kernel");
}

template <class Table>
constexpr auto MakeWmmaRows() {
  return MakeRows<std::size(Table::kConfigs)>([](auto index) {
    using Variant = TableVariant<Table, index>;
    constexpr Config kConfig = Variant::kConfig;
    return Kernel{
        .name = Variant::kName.view(),
        .family = "wmma",
        .summary = Variant::kSummary.view(),
        .capability = {.min = 80},
        .types = kTypes<kConfig.type, ComputeOf(kConfig)>,
        .tile_m = kConfig.tile_m(),
        .tile_n = kConfig.tile_n(),
        .tile_k = kConfig.tile_k,
        .stages = kConfig.stages,
        .threads = kConfig.threads(),
        .shared_memory_bytes = kConfig.shared_bytes(),
        .params = kConfig.order == Order::kBanded ? absl::Span<const ParamSpec>(kBandParams)
                                                  : absl::Span<const ParamSpec>(),
        .auto_rank = 30,
        .workspace_bytes = TransposeScratchBytesFor<false, false>,
        .launch = LaunchWmma<Variant>,
    };
  });
}

}  // namespace gemm::wmma
