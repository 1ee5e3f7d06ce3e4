// Makes rows of the catalogue from a table of Hopper variants.
#pragma once

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/cuda_status.h"
#include "kernels/core/resident_blocks.h"
#include "kernels/core/rows.h"
#include "kernels/core/shared_memory.h"
#include "kernels/core/tile_grid.h"
#include "kernels/hopper/estimate.h"
#include "kernels/hopper/kernel.cuh"
#include "kernels/hopper/load_layout.h"
#include "kernels/hopper/name.h"
#include "kernels/hopper/tensor_map.h"
#include "kernels/hopper/tile_group.h"
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

inline constexpr ParamSpec kHopperParams[] = {
    {"group_m", "rows of clusters of a group, whose tiles run column by column", 1, 1024,
     kOwnChoice}};

// The output types are those of VisitHopperOutput.
template <DType kOperand>
inline constexpr Types kHopper16BitTypes[] = {{kOperand, kOperand, kOperand, Compute::kF32},
                                              {kOperand, kOperand, DType::kF32, Compute::kF32}};
template <DType kOperand>
inline constexpr Types kHopperFp8Types[] = {{kOperand, kOperand, DType::kF16, Compute::kF32},
                                            {kOperand, kOperand, DType::kBF16, Compute::kF32},
                                            {kOperand, kOperand, DType::kF32, Compute::kF32}};
inline constexpr Types kHopperTf32Types[] = {
    {DType::kF32, DType::kF32, DType::kF32, Compute::kTF32}};
inline constexpr Types kHopperF16Acc16Types[] = {
    {DType::kF16, DType::kF16, DType::kF16, Compute::kF16}};

template <class Variant>
constexpr absl::Span<const Types> HopperTypes() {
  constexpr DType kOperand = Variant::kConfig.operand;
  if (Variant::kConfig.accumulator == DType::kF16) return kHopperF16Acc16Types;
  if (kOperand == DType::kF32) return kHopperTf32Types;
  if (SizeOf(kOperand) == 1) return kHopperFp8Types<kOperand>;
  return kHopper16BitTypes<kOperand>;
}

// The launch, but for the kernel's layout.
struct HopperLaunch {
  HopperMaps maps;
  HopperArguments arguments;
  unsigned blocks = 0;
};

// An operand of a batch.
struct HopperMatrices {
  const void* data = nullptr;
  int64_t ld = 0;
  int64_t stride = 0;
  int64_t batch = 1;

  // Whether the products of a batch read the same matrix.
  bool shared() const { return batch == 1 || stride == 0; }
};

// Matrices as they are stored, in boxes of 64 rows of k, or of `lines` lines along k.
inline absl::StatusOr<CUtensorMap> DescribeOperand(const HopperMatrices& operand, DType type,
                                                   Compute compute, int64_t lines, int64_t k,
                                                   bool along_k, int box_lines) {
  const int64_t rows = along_k ? lines : k, columns = along_k ? k : lines;
  const int64_t size = static_cast<int64_t>(SizeOf(type));
  return DescribeToTma({.data = operand.data,
                        .type = type,
                        .rows = rows,
                        .columns = columns,
                        .pitch = rows == 1 ? PitchBytes(columns, type) : operand.ld * size,
                        .count = operand.shared() ? 1 : operand.batch,
                        .stride = operand.stride * size,
                        .box_rows = along_k ? box_lines : 128 / static_cast<int>(size),
                        .compute = compute});
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
  return swapped;
}

inline bool OnlyScales(const Problem& p) {
  return p.beta == 0 && p.bias == BiasAxis::kNone && p.activation == Activation::kNone;
}

template <class Variant>
absl::StatusOr<HopperLaunch> PlanHopper(const TransposedProduct& product, int group_m,
                                        int running) {
  constexpr HopperConfig kConfig = Variant::kConfig;
  const TransposedProduct multiplied = kConfig.swap ? TransposeOfD(product) : product;
  const Problem& p = multiplied.problem;
  const Operands& o = multiplied.operands;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;
  if (p.m > kMost || p.n > kMost || p.k > kMost) {
    return absl::InvalidArgumentError(absl::StrCat("m, n and k are ", p.m, ", ", p.n, " and ", p.k,
                                                   "; this kernel takes up to ", kMost, " each"));
  }
  const absl::StatusOr<TileGrid> grid =
      MakeTileGrid(p, kConfig.tile_m * kConfig.cluster_m, kConfig.tile_n * kConfig.cluster_n);
  if (!grid.ok()) return grid.status();
  const HopperMatrices of_a{o.a, o.lda, o.stride_a, p.batch}, of_b{o.b, o.ldb, o.stride_b, p.batch};
  const auto a = DescribeOperand(of_a, p.types.a, p.types.compute, p.m, p.k, !p.trans_a,
                                 kConfig.tile_m / kConfig.cluster_n);
  if (!a.ok()) return a.status();
  const auto b = DescribeOperand(of_b, p.types.b, p.types.compute, p.n, p.k, p.trans_b,
                                 kConfig.tile_n / kConfig.cluster_m);
  if (!b.ok()) return b.status();
  const int64_t d_m = product.problem.m, d_n = product.problem.n;
  const auto d = DescribeOperand({o.d, o.ldd, o.stride_d, p.batch}, p.types.d, Compute::kF32, d_m,
                                 d_n, /*along_k=*/true, kConfig.box_rows());
  if (!d.ok()) return d.status();
  const int64_t clusters = int64_t{grid->tiles_m} * grid->tiles_n * p.batch;
  // Blocks that share k do not stay: they compute one tile.
  const int64_t launched = kConfig.split > 1 ? clusters : std::min<int64_t>(clusters, running);
  const int64_t blocks = launched * kConfig.cluster();
  // A block counts beyond the last cluster, by as many as the grid has.
  if (clusters > kMost || blocks > kMost) {
    return absl::InvalidArgumentError(absl::StrCat("batch_count x m x n is ", p.batch, " x ", d_m,
                                                   " x ", d_n,
                                                   ", more tiles than one launch takes"));
  }
  const int group = group_m == kOwnChoice ? HopperGroup(kConfig, grid->tiles_m, running)
                                          : std::min(group_m, grid->tiles_m);
  return HopperLaunch{
      .maps = {.a = *a, .b = *b, .d = *d},
      .arguments = {.m = static_cast<int>(d_m),
                    .n = static_cast<int>(d_n),
                    .k_tiles = static_cast<int>((p.k + kConfig.tile_k() - 1) / kConfig.tile_k()),
                    .order = HopperTileOrder(grid->tiles_m, grid->tiles_n, group,
                                             static_cast<int>(p.batch)),
                    .only_scales =
                        OnlyScales(p) && d_n * static_cast<int64_t>(SizeOf(p.types.d)) % 16 == 0,
                    .step_a = of_a.shared() ? 0 : 1,
                    .step_b = of_b.shared() ? 0 : 1,
                    .strides = StridesOf(o)},
      .blocks = static_cast<unsigned>(blocks),
  };
}

template <class Variant, bool kTransA, bool kTransB>
absl::Status LaunchHopperLayout(const TransposedProduct& product, const Launch& launch) {
  constexpr HopperConfig kConfig = Variant::kConfig;
  constexpr auto* kKernel = &HopperKernel<Variant, kTransA, kTransB>;
  const absl::Status allowed = AllowSharedMemory<kKernel>(kConfig.shared_bytes());
  if (!allowed.ok()) return allowed;
  const absl::StatusOr<int> running =
      ResidentClusters<kKernel>(kConfig.cluster(), kConfig.threads(), kConfig.shared_bytes());
  if (!running.ok()) return running.status();
  const absl::StatusOr<HopperLaunch> plan =
      PlanHopper<Variant>(product, static_cast<int>(launch.params[0]), *running);
  if (!plan.ok()) return plan.status();
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {static_cast<unsigned>(kConfig.cluster()), 1, 1};
  // This kernel prepares its barriers while the one before it ends: AwaitKernelBefore.
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = {plan->blocks, 1, 1};
  config.blockDim = {static_cast<unsigned>(kConfig.threads()), 1, 1};
  config.dynamicSmemBytes = static_cast<size_t>(kConfig.shared_bytes());
  config.stream = launch.stream;
  config.attrs = attributes;
  config.numAttrs = 2;
  return CudaStatus(cudaLaunchKernelEx(&config, kKernel, plan->maps, plan->arguments,
                                       MakeEpilogue<DType::kF32>(product.problem, product.operands),
                                       product.problem.types.d),
                    "launch of a Hopper kernel");
}

template <class Variant>
size_t HopperScratchBytes(const Problem& p) {
  return TransposeScratchBytes(p, HopperLayout(Variant::kConfig, p));
}

template <class Variant>
double HopperSeconds(const Problem& p) {
  return EstimateHopper(Variant::kConfig, p);
}

template <class Variant>
absl::Status LaunchHopper(const Launch& launch) {
  constexpr HopperConfig kConfig = Variant::kConfig;
  const absl::StatusOr<TransposedProduct> transposed =
      TransposeOperands(launch, HopperLayout(kConfig, launch.problem));
  if (!transposed.ok()) return transposed.status();
  const Problem& p = transposed->problem;
  // The operands that are multiplied are B and A where D's transpose is.
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
        .row_blocks = true,
        .workspace_bytes =
            kConfig.along_k_only() || kConfig.swap ? HopperScratchBytes<Variant> : nullptr,
        .launch = LaunchHopper<Variant>,
    };
  });
}

}  // namespace gemm
