// Launches a Hopper kernel of f32 on CUDA cores, for one product or for a batch of them.
#pragma once

#include <algorithm>

#include "kernels/hopper/f32/kernel.cuh"
#include "kernels/hopper/f32/maps.h"
#include "kernels/hopper/launch.cuh"

namespace gemm {

template <class Variant, bool kTransA, bool kTransB>
absl::Status LaunchHopperF32Layout(const TransposedProduct& product, const Launch& launch) {
  constexpr HopperF32Config kConfig = Variant::kConfig;
  using Tiles = HopperTiles<Variant>;
  constexpr auto* kKernel = &HopperF32Kernel<Variant, kTransA, kTransB>;
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

}  // namespace gemm
