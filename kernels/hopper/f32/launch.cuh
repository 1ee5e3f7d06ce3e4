// Launches a Hopper kernel of f32 on CUDA cores, for one product or for a batch of them.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/hopper/f32/kernel.cuh"
#include "kernels/hopper/f32/maps.h"
#include "kernels/hopper/launch.cuh"

namespace gemm {

// The most blocks that share the last tiles. On a GPU with more multiprocessors, some have no
// block.
inline constexpr int kMostStreamBlocks = 132;

// Scratch bytes for the accumulators that they leave for one another, behind the transposed
// operands.
template <class Variant>
constexpr size_t HopperF32StreamBytes() {
  constexpr HopperF32Config kConfig = Variant::kConfig;
  return kConfig.stream ? kMostStreamBlocks * size_t{4} * (kConfig.tile_m * kConfig.tile_n + 64)
                        : 0;
}

// Clears the flags that the next kernel's blocks await, and the count of started blocks behind
// them.
inline __global__ void LowerFlags(uint32_t* flags) { flags[threadIdx.x] = 0; }

template <class Variant, bool kTransA, bool kTransB>
absl::Status LaunchHopperF32Stream(const TransposedProduct& product, const Launch& launch,
                                   size_t used) {
  constexpr HopperF32Config kConfig = Variant::kConfig;
  using Tiles = HopperF32StreamTiles<Variant>;
  constexpr auto* kKernel = &HopperF32Kernel<Tiles, kTransA, kTransB>;
  const absl::StatusOr<int> running = PrepareHopperKernel<Tiles, kKernel>();
  if (!running.ok()) return running.status();
  const Problem& p = product.problem;
  if (absl::Status status = CheckHopperSizes(p); !status.ok()) return status;
  const absl::StatusOr<HopperLaunch> planned =
      PlanHopperLaunch(kConfig, p, p, launch.params[0], *running);
  if (!planned.ok()) return planned.status();
  const absl::StatusOr<HopperDescription> described = DescribeHopperF32(kConfig, product);
  if (!described.ok()) return described.status();
  if (const size_t bytes = used + HopperF32StreamBytes<Variant>(); bytes > launch.workspace.bytes) {
    return absl::InternalError(absl::StrCat("blocks that share tiles need ", bytes,
                                            " bytes of scratch memory; there are ",
                                            launch.workspace.bytes));
  }
  typename Tiles::Arguments arguments{
      MakeHopperArguments<Variant>(product, *described, planned->order)};
  arguments.stream = HopperF32Stream(planned->order.clusters(),
                                     std::min(*running, kMostStreamBlocks), arguments.k_tiles);
  arguments.partials =
      reinterpret_cast<float4*>(static_cast<std::byte*>(launch.workspace.data) + used);
  arguments.flags = reinterpret_cast<uint32_t*>(
      arguments.partials + int64_t{kMostStreamBlocks} * kConfig.tile_m * kConfig.tile_n / 4);
  arguments.started = arguments.flags + kMostStreamBlocks;
  if (arguments.stream.shares()) {
    LowerFlags<<<1, kMostStreamBlocks + 1, 0, launch.stream>>>(arguments.flags);
    if (absl::Status status = CudaStatus(cudaGetLastError(), "launch of LowerFlags");
        !status.ok()) {
      return status;
    }
  }
  return EnqueueHopperKernel<Tiles, kKernel>(product, described->maps, arguments,
                                             arguments.stream.blocks(), launch.stream);
}

// `used` bytes of the workspace hold operands.
template <class Variant, bool kTransA, bool kTransB>
absl::Status LaunchHopperF32Layout(const TransposedProduct& product, const Launch& launch,
                                   size_t used) {
  constexpr HopperF32Config kConfig = Variant::kConfig;
  if constexpr (kConfig.stream) {
    return LaunchHopperF32Stream<Variant, kTransA, kTransB>(product, launch, used);
  } else {
    using Tiles = HopperTiles<Variant>;
    constexpr auto* kKernel = &HopperF32Kernel<Tiles, kTransA, kTransB>;
    const absl::StatusOr<int> running = PrepareHopperKernel<Tiles, kKernel>();
    if (!running.ok()) return running.status();
    const Problem& p = product.problem;
    if (absl::Status status = CheckHopperSizes(p); !status.ok()) return status;
    const absl::StatusOr<HopperLaunch> planned =
        PlanHopperLaunch(kConfig, p, p, launch.params[0], *running);
    if (!planned.ok()) return planned.status();
    const absl::StatusOr<HopperDescription> described = DescribeHopperF32(kConfig, product);
    if (!described.ok()) return described.status();
    return EnqueueHopperKernel<Tiles, kKernel>(
        product, described->maps, MakeHopperArguments<Variant>(product, *described, planned->order),
        planned->blocks, launch.stream);
  }
}

}  // namespace gemm
