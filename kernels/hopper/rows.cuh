// Makes rows of the catalogue from a table of Hopper variants.
#pragma once

#include <iterator>

#include "kernels/core/rows.h"
#include "kernels/hopper/estimate.h"
#include "kernels/hopper/launch.cuh"
#include "kernels/hopper/launch_stack.cuh"
#include "kernels/hopper/row.h"
#include "kernels/hopper/split_b.h"
#include "kernels/transpose/operands.h"

namespace gemm {

// A variant as a type: nvcc cannot name kernels by records of a namespace. `Table`
// has a constexpr array kConfigs, whose operands are of the type that kType names.
template <class Table, size_t kIndex>
struct HopperVariant {
  static constexpr HopperConfig kConfig = Table::kConfigs[kIndex];
  static constexpr NameText kName = HopperName(Table::kType, kConfig);
  static constexpr SummaryText kSummary = HopperSummary(kConfig);
  static_assert(kConfig.valid());
};

// The output types are those of VisitHopperOutput.
template <DType kOperand>
inline constexpr Types kHopper16BitTypes[] = {{kOperand, kOperand, kOperand, Compute::kF32},
                                              {kOperand, kOperand, DType::kF32, Compute::kF32}};
template <DType kOperand>
inline constexpr Types kHopperFp8Types[] = {{kOperand, kOperand, DType::kF16, Compute::kF32},
                                            {kOperand, kOperand, DType::kBF16, Compute::kF32},
                                            {kOperand, kOperand, DType::kF32, Compute::kF32}};
inline constexpr Types kHopperS8Types[] = {{DType::kS8, DType::kS8, DType::kS32, Compute::kS32},
                                           {DType::kS8, DType::kS8, DType::kF32, Compute::kS32},
                                           {DType::kS8, DType::kS8, DType::kF16, Compute::kS32},
                                           {DType::kS8, DType::kS8, DType::kBF16, Compute::kS32}};
inline constexpr Types kHopperTf32Types[] = {
    {DType::kF32, DType::kF32, DType::kF32, Compute::kTF32}};
inline constexpr Types kHopperF32x3Types[] = {
    {DType::kF32, DType::kF32, DType::kF32, Compute::kF32x3}};
inline constexpr Types kHopperF16Acc16Types[] = {
    {DType::kF16, DType::kF16, DType::kF16, Compute::kF16}};

template <class Variant>
constexpr absl::Span<const Types> HopperTypes() {
  constexpr DType kOperand = Variant::kConfig.operand;
  if (Variant::kConfig.accumulator == DType::kF16) return kHopperF16Acc16Types;
  if (Variant::kConfig.f32x3) return kHopperF32x3Types;
  if (Variant::kConfig.integers()) return kHopperS8Types;
  if (kOperand == DType::kF32) return kHopperTf32Types;
  if (SizeOf(kOperand) == 1) return kHopperFp8Types<kOperand>;
  return kHopper16BitTypes<kOperand>;
}

template <class Variant>
size_t HopperScratchBytes(const Problem& p) {
  return TransposeScratchBytes(p, HopperLayout(Variant::kConfig, p)) +
         (Variant::kConfig.f32x3 ? SplitBBytes(p) : 0);
}

template <class Variant>
double HopperSeconds(const Problem& p) {
  return EstimateHopper(Variant::kConfig, p);
}

template <class Variant, bool kTransA, bool kTransB>
absl::Status LaunchHopperLayout(const TransposedProduct& product, const Launch& launch) {
  if constexpr (Variant::kConfig.groups && !(kTransA && !Variant::kConfig.swap)) {
    if (product.problem.grouped == GroupedBy::kM) {
      return LaunchHopperStack<Variant, kTransA, kTransB>(product, launch);
    }
  }
  if constexpr (Variant::kConfig.takes_scales()) {
    constexpr ScaleBlocks kLines = ScaleBlocks::kLines, kTiles = ScaleBlocks::kTiles;
    static_assert(!Variant::kConfig.swap);
    if (product.problem.scales_b == kTiles) {
      using Tiles = HopperScaledTiles<Variant, kTiles>;
      return LaunchHopperProducts<Tiles, kTransA, kTransB>(product, launch);
    }
    if (product.problem.scales_b == kLines) {
      using Tiles = HopperScaledTiles<Variant, kLines>;
      return LaunchHopperProducts<Tiles, kTransA, kTransB>(product, launch);
    }
  }
  return LaunchHopperProducts<HopperTiles<Variant>, kTransA, kTransB>(product, launch);
}

template <class Variant>
absl::Status LaunchHopper(const Launch& launch) {
  constexpr HopperConfig kConfig = Variant::kConfig;
  const LoadLayout layout = HopperLayout(kConfig, launch.problem);
  absl::StatusOr<TransposedProduct> transposed = TransposeOperands(launch, layout);
  if (!transposed.ok()) return transposed.status();
  if (kConfig.f32x3) {
    const size_t used = TransposeScratchBytes(launch.problem, layout);
    if (absl::Status status = SplitB(launch, used, *transposed); !status.ok()) return status;
  }
  const Problem& p = transposed->problem;
  // If D's transpose is computed, the operands are B and A.
  if constexpr (kConfig.along_k_only()) {
    return LaunchHopperLayout<Variant, false, true>(*transposed, launch);
  } else if constexpr (kConfig.swap) {
    return p.trans_b ? LaunchHopperLayout<Variant, false, true>(*transposed, launch)
                     : LaunchHopperLayout<Variant, true, true>(*transposed, launch);
  } else if (p.trans_a) {
    return p.trans_b ? LaunchHopperLayout<Variant, true, true>(*transposed, launch)
                     : LaunchHopperLayout<Variant, true, false>(*transposed, launch);
  } else {
    return p.trans_b ? LaunchHopperLayout<Variant, false, true>(*transposed, launch)
                     : LaunchHopperLayout<Variant, false, false>(*transposed, launch);
  }
}

template <class Table>
constexpr auto MakeHopperRows() {
  return MakeRows<std::size(Table::kConfigs)>([](auto index) {
    using Variant = HopperVariant<Table, index>;
    constexpr HopperConfig kConfig = Variant::kConfig;
    return Kernel{
        .name = Variant::kName.view(),
        .family = "hopper",
        .summary = Variant::kSummary.view(),
        .capability = {.min = 90, .max = 90},
        .code = DeviceCode::kSm90a,
        .types = HopperTypes<Variant>(),
        .tile_m = kConfig.d_tile_m(),
        .tile_n = kConfig.d_tile_n(),
        .tile_k = kConfig.tile_k(),
        .stages = kConfig.stages,
        .threads = kConfig.threads(),
        .shared_memory_bytes = static_cast<size_t>(kConfig.shared_bytes()),
        .params = kHopperParams,
        .auto_rank = 60,
        .estimated_seconds = HopperSeconds<Variant>,
        .batches = true,
        .groups = kConfig.groups,
        .row_blocks = true,
        .block_scales = kConfig.takes_scales(),
        .max_extent = kHopperMost,
        .workspace_bytes =
            kConfig.along_k_only() || kConfig.swap ? HopperScratchBytes<Variant> : nullptr,
        .launch = LaunchHopper<Variant>,
    };
  });
}

}  // namespace gemm
