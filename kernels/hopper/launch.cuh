// Launches a Hopper kernel for one product, or for a batch of them.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "kernels/core/cuda_status.h"
#include "kernels/core/resident_blocks.h"
#include "kernels/core/shared_memory.h"
#include "kernels/core/tile_grid.h"
#include "kernels/hopper/kernel.cuh"
#include "kernels/hopper/maps.h"
#include "kernels/hopper/scales.cuh"
#include "kernels/hopper/schedule.cuh"
#include "kernels/hopper/tile_order.h"

namespace gemm {

// The largest dimension, and the most tiles. A block counts beyond the last tile, by as many as the
// grid has, and must not overflow.
inline constexpr int64_t kHopperMost = std::numeric_limits<int32_t>::max() / 2;

inline absl::Status CheckHopperSizes(const Problem& p) {
  if (std::max({p.m, p.n, p.k}) <= kHopperMost) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("m, n and k are ", p.m, ", ", p.n, " and ", p.k,
                                                 "; this kernel takes up to ", kHopperMost,
                                                 " each"));
}

// The arguments that do not depend on the order of the tiles.
template <class Variant, class Order>
HopperArguments<Order> MakeHopperArguments(const TransposedProduct& product,
                                           const HopperDescription& described, const Order& order) {
  constexpr int kTileK = Variant::kConfig.tile_k();
  const Problem& p = product.problem;
  const bool only_scales =
      p.beta == 0 && p.bias == BiasAxis::kNone && p.activation == Activation::kNone;
  return {.m = static_cast<int>(p.m),
          .n = static_cast<int>(p.n),
          .k_tiles = static_cast<int>((p.k + kTileK - 1) / kTileK),
          .order = order,
          .only_scales = only_scales && p.n * static_cast<int64_t>(SizeOf(p.types.d)) % 16 == 0,
          .step_a = described.step_a,
          .step_b = described.step_b,
          .strides = StridesOf(product.operands)};
}

// Shared memory of a block.
template <class Tiles>
constexpr int HopperSharedBytes() {
  constexpr auto kConfig = Tiles::Variant::kConfig;
  if constexpr (kHasScales<Tiles>) {
    constexpr int kBytes = kConfig.shared_bytes() + kConfig.consumers * HopperScaleBytes<Tiles>();
    static_assert(kBytes <= HopperConfig::kMostSharedBytes);
    return kBytes;
  } else {
    return kConfig.shared_bytes();
  }
}

// Prepares the kernel for launches. Returns how many of its clusters run at a time.
template <class Tiles, auto* kKernel>
absl::StatusOr<int> PrepareHopperKernel() {
  constexpr auto kConfig = Tiles::Variant::kConfig;
  const absl::Status allowed = AllowSharedMemory<kKernel>(HopperSharedBytes<Tiles>());
  if (!allowed.ok()) return allowed;
  return ResidentClusters<kKernel>(kConfig.cluster(), kConfig.threads(),
                                   HopperSharedBytes<Tiles>());
}

template <class Tiles, auto* kKernel>
absl::Status EnqueueHopperKernel(const TransposedProduct& product, const HopperMaps& maps,
                                 const typename Tiles::Arguments& arguments, int64_t blocks,
                                 CUstream_st* stream) {
  constexpr auto kConfig = Tiles::Variant::kConfig;
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {static_cast<unsigned>(kConfig.cluster()), 1, 1};
  // This kernel prepares its barriers while the one before it ends: AwaitKernelBefore.
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = {static_cast<unsigned>(blocks), 1, 1};
  config.blockDim = {static_cast<unsigned>(kConfig.threads()), 1, 1};
  config.dynamicSmemBytes = static_cast<size_t>(HopperSharedBytes<Tiles>());
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = 2;
  return CudaStatus(cudaLaunchKernelEx(&config, kKernel, maps, arguments,
                                       MakeEpilogue<DType::kF32>(product.problem, product.operands),
                                       product.problem.types.d),
                    "launch of a Hopper kernel");
}

// The tiles of a launch, and its blocks.
struct HopperLaunch {
  HopperTileOrder order;
  int64_t blocks = 0;
};

// Plans the launch of `problem`, which is multiplied as `multiplied`. `running` clusters run at a
// time. `group_m` may be kOwnChoice. `config`: HopperConfig or HopperF32Config.
template <class Config>
absl::StatusOr<HopperLaunch> PlanHopperLaunch(const Config& config, const Problem& problem,
                                              const Problem& multiplied, int64_t group_m,
                                              int running) {
  const absl::StatusOr<TileGrid> grid =
      MakeTileGrid(multiplied, config.tile_m * config.cluster_m, config.tile_n * config.cluster_n);
  if (!grid.ok()) return grid.status();
  const int64_t clusters = int64_t{grid->tiles_m} * grid->tiles_n * problem.batch;
  // Blocks that share k are not persistent: they compute one tile.
  const int64_t launched = config.split > 1 ? clusters : std::min<int64_t>(clusters, running);
  const int64_t blocks = launched * config.cluster();
  if (clusters > kHopperMost || blocks > kHopperMost) {
    return absl::InvalidArgumentError(absl::StrCat("batch_count x m x n is ", problem.batch, " x ",
                                                   problem.m, " x ", problem.n,
                                                   ", more tiles than one launch takes"));
  }
  const int group = group_m == kOwnChoice
                        ? HopperGroup(config, grid->tiles_m, running)
                        : static_cast<int>(std::min<int64_t>(group_m, grid->tiles_m));
  return HopperLaunch{
      HopperTileOrder(grid->tiles_m, grid->tiles_n, group, static_cast<int>(problem.batch)),
      blocks};
}

// `Tiles` is HopperTiles or HopperScaledTiles.
template <class Tiles, bool kTransA, bool kTransB>
absl::Status LaunchHopperProducts(const TransposedProduct& product, const Launch& launch) {
  using Variant = typename Tiles::Variant;
  constexpr HopperConfig kConfig = Variant::kConfig;
  constexpr auto* kKernel = &HopperKernel<Tiles, kTransA, kTransB>;
  const absl::StatusOr<int> running = PrepareHopperKernel<Tiles, kKernel>();
  if (!running.ok()) return running.status();
  const Problem& p = product.problem;
  if (absl::Status status = CheckHopperSizes(p); !status.ok()) return status;
  const Problem multiplied = kConfig.swap ? TransposeOfD(product).problem : p;
  const absl::StatusOr<HopperLaunch> planned =
      PlanHopperLaunch(kConfig, p, multiplied, launch.params[0], *running);
  if (!planned.ok()) return planned.status();
  const absl::StatusOr<HopperDescription> described =
      DescribeHopper<Variant>(product, {.a = p.batch, .b = p.batch, .d = p.batch});
  if (!described.ok()) return described.status();
  typename Tiles::Arguments arguments{
      MakeHopperArguments<Variant>(product, *described, planned->order)};
  if constexpr (kHasScales<Tiles>) {
    const Operands operands = kConfig.swap ? TransposeOfD(product).operands : product.operands;
    arguments.scales_a = MakeHopperScales(operands.scales_a, multiplied.scales_a, multiplied.m);
    arguments.scales_b = MakeHopperScales(operands.scales_b, multiplied.scales_b, multiplied.n);
  }
  return EnqueueHopperKernel<Tiles, kKernel>(product, described->maps, arguments, planned->blocks,
                                             launch.stream);
}

}  // namespace gemm
