// Makes rows of the catalogue from a table of grouped variants.
#pragma once

#include <algorithm>
#include <iterator>

#include "kernels/core/cuda_status.h"
#include "kernels/core/rows.h"
#include "kernels/core/shared_memory.h"
#include "kernels/core/tile_grid.h"
#include "kernels/grouped/kernel.cuh"
#include "kernels/grouped/name.h"
#include "kernels/transpose/operands.h"

namespace gemm {

// How the variants multiply.
inline constexpr absl::string_view kWarpgroups =
    "groups of tile rows; cp.async stages; wgmma on sm_90a, mma.sync elsewhere";
inline constexpr absl::string_view kPair =
    "groups of tile rows; cp.async stages; mma.sync: two warps make no warpgroup";

// A variant as a type: nvcc cannot name kernels by records of a namespace. `Table`
// has a constexpr array kConfigs, whose operands are of the type that kType names.
template <class Table, size_t kIndex>
struct GroupedVariant {
  static constexpr GroupedConfig kConfig = Table::kConfigs[kIndex];
  static constexpr NameText kName = GroupedName(Table::kType, kConfig);
};

inline constexpr ParamSpec kGroupedParams[] = {
    {"group_m", "tile rows of a group, whose tiles run column by column", 1, 64, 8}};

// The output types are those of VisitGroupedOutput.
template <DType kOperand>
inline constexpr Types kGroupedTypes[] = {{kOperand, kOperand, kOperand, Compute::kF32},
                                          {kOperand, kOperand, DType::kF32, Compute::kF32}};
template <DType kOperand>
inline constexpr Types kGroupedFp8Types[] = {{kOperand, kOperand, DType::kF16, Compute::kF32},
                                             {kOperand, kOperand, DType::kBF16, Compute::kF32},
                                             {kOperand, kOperand, DType::kF32, Compute::kF32}};

template <DType kOperand>
constexpr absl::Span<const Types> GroupedTypes() {
  if (SizeOf(kOperand) == 1) return kGroupedFp8Types<kOperand>;
  return kGroupedTypes<kOperand>;
}

template <class Variant>
absl::Status LaunchGrouped(const Launch& launch) {
  constexpr GroupedConfig kConfig = Variant::kConfig;
  const absl::Status allowed = AllowSharedMemory<GroupedKernel<Variant>>(kConfig.shared_bytes());
  if (!allowed.ok()) return allowed;
  const absl::StatusOr<TransposedProduct> transposed =
      TransposeOperands(launch, {.trans_a = false, .trans_b = kConfig.trans_b()});
  if (!transposed.ok()) return transposed.status();
  const Problem& p = transposed->problem;
  const Operands& o = transposed->operands;
  const absl::StatusOr<TileGrid> grid = MakeTileGrid(p, kConfig.tile_m, kConfig.tile_n);
  if (!grid.ok()) return grid.status();
  const GroupedArguments arguments{
      .a = {.data = static_cast<const std::byte*>(o.a), .pitch = o.lda * kConfig.element_bytes()},
      .b = {.data = static_cast<const std::byte*>(o.b), .pitch = o.ldb * kConfig.element_bytes()},
      .m = p.m,
      .n = p.n,
      .k = p.k,
      .tiles_m = grid->tiles_m,
      .tiles_n = grid->tiles_n,
      .group = std::min(static_cast<int>(launch.params[0]), grid->tiles_m),
  };
  // The kernel takes D's type at run time. The epilogue's scalars are the same for all
  // of these types.
  GroupedKernel<Variant>
      <<<grid->blocks(), kConfig.threads(), kConfig.shared_bytes(), launch.stream>>>(
          arguments, MakeEpilogue<DType::kF32>(p, o), p.types.d);
  return CudaStatus(cudaGetLastError(), "launch of a grouped kernel");
}

template <class Table>
constexpr auto MakeGroupedRows() {
  return MakeRows<std::size(Table::kConfigs)>([](auto index) {
    using Variant = GroupedVariant<Table, index>;
    constexpr GroupedConfig kConfig = Variant::kConfig;
    return Kernel{
        .name = Variant::kName.view(),
        .family = "grouped",
        .summary = kConfig.fills_warpgroups() ? kWarpgroups : kPair,
        .capability = {.min = kConfig.fp8() ? 89 : 80},
        .code = kConfig.fp8() ? DeviceCode::kSm89 : DeviceCode::kAny,
        .types = GroupedTypes<kConfig.operand>(),
        .tile_m = kConfig.tile_m,
        .tile_n = kConfig.tile_n,
        .tile_k = kConfig.tile_k,
        .stages = kConfig.stages,
        .threads = kConfig.threads(),
        .shared_memory_bytes = static_cast<size_t>(kConfig.shared_bytes()),
        .params = kGroupedParams,
        .auto_rank = 50,
        .workspace_bytes = TransposeScratchBytesFor<false, kConfig.trans_b()>,
        .launch = LaunchGrouped<Variant>,
    };
  });
}

}  // namespace gemm
