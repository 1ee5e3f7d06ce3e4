// Makes rows of the catalogue from a table of mma.sync variants.
#pragma once

#include <algorithm>
#include <iterator>

#include "kernels/core/cuda_status.h"
#include "kernels/core/resident_blocks.h"
#include "kernels/core/rows.h"
#include "kernels/core/shared_memory.h"
#include "kernels/core/tile_bands.h"
#include "kernels/core/tile_grid.h"
#include "kernels/mma/kernel.cuh"
#include "kernels/mma/name.h"
#include "kernels/transpose/operands.h"

namespace gemm::mma {

// A variant as a type: nvcc cannot name kernels by records of a namespace. `Table`
// has a constexpr Config kConfigs[].
template <class Table, size_t kIndex>
struct TableVariant {
  static constexpr Config kConfig = Table::kConfigs[kIndex];
  static constexpr NameText kName = MmaName(kConfig);
  static constexpr SummaryText kSummary = MmaSummary(kConfig);
};

template <DType kAccumulate>
inline constexpr Types kTypes[] = {{DType::kF16, DType::kF16, DType::kF16,
                                    kAccumulate == DType::kF32 ? Compute::kF32 : Compute::kF16}};

template <class Variant>
absl::Status LaunchMma(const Launch& launch) {
  constexpr Config kConfig = Variant::kConfig;
  constexpr int kDynamicBytes = kConfig.dynamic_shared ? kConfig.shared_bytes() : 0;
  const absl::Status allowed = AllowSharedMemory<MmaKernel<Variant>>(kDynamicBytes);
  if (!allowed.ok()) return allowed;
  const absl::StatusOr<TransposedProduct> transposed =
      TransposeOperands(launch, {.trans_a = false, .trans_b = kConfig.trans_b});
  if (!transposed.ok()) return transposed.status();
  const Problem& p = transposed->problem;
  const Operands& o = transposed->operands;
  const absl::StatusOr<TileGrid> grid = MakeTileGrid(p, kConfig.tile_m(), kConfig.tile_n());
  if (!grid.ok()) return grid.status();
  constexpr int64_t kElementBytes = SizeOf(DType::kF16);
  unsigned blocks = grid->blocks();
  if constexpr (kConfig.persistent) {
    const absl::StatusOr<int> resident =
        ResidentBlocks<MmaKernel<Variant>>(kConfig.threads(), kDynamicBytes);
    if (!resident.ok()) return resident.status();
    blocks = std::min(blocks, static_cast<unsigned>(*resident));
  }
  const Arguments arguments{
      .a = {.data = static_cast<const std::byte*>(o.a), .pitch = o.lda * kElementBytes},
      .b = {.data = static_cast<const std::byte*>(o.b), .pitch = o.ldb * kElementBytes},
      .epilogue = MakeEpilogue<DType::kF16>(p, o),
      .m = p.m,
      .n = p.n,
      .k = p.k,
      .tiles_m = grid->tiles_m,
      .tiles_n = grid->tiles_n,
      .band = BandTiles(launch.params[0], grid->tiles_n, kConfig.tile_n()),
  };
  MmaKernel<Variant><<<blocks, kConfig.threads(), kDynamicBytes, launch.stream>>>(arguments);
  return CudaStatus(cudaGetLastError(), "launch of an mma.sync kernel");
}

template <class Table>
constexpr auto MakeTableRows() {
  return MakeRows<std::size(Table::kConfigs)>([](auto index) {
    using Variant = TableVariant<Table, index>;
    constexpr Config kConfig = Variant::kConfig;
    return Kernel{
        .name = Variant::kName.view(),
        .family = "mma",
        .summary = Variant::kSummary.view(),
        .capability = {.min = 80},
        .types = kTypes<kConfig.accumulate>,
        .tile_m = kConfig.tile_m(),
        .tile_n = kConfig.tile_n(),
        .tile_k = kConfig.tile_k,
        .stages = kConfig.stages,
        .threads = kConfig.threads(),
        .shared_memory_bytes = kConfig.shared_bytes(),
        .params = kBandParams,
        .auto_rank = 40,
        .workspace_bytes = TransposeScratchBytesFor<false, kConfig.trans_b>,
        .launch = LaunchMma<Variant>,
    };
  });
}

}  // namespace gemm::mma
