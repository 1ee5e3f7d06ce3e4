// Launches a Hopper kernel for a group by m: its products lie stacked in A and in D.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "kernels/hopper/launch.cuh"
#include "kernels/hopper/stack_order.h"
#include "kernels/hopper/stacked_tiles.cuh"
#include "kernels/hopper/tile_order.h"

namespace gemm {

template <class Variant, bool kTransA, bool kTransB>
absl::Status LaunchHopperStack(const TransposedProduct& product, const Launch& launch) {
  constexpr HopperConfig kConfig = Variant::kConfig;
  constexpr int kTileRows = kConfig.d_tile_m(), kTileColumns = kConfig.d_tile_n();
  using Tiles = HopperStackedTiles<Variant>;
  constexpr auto* kKernel = &HopperKernel<Tiles, kTransA, kTransB>;
  const absl::StatusOr<int> running = PrepareHopperKernel<Tiles, kKernel>();
  if (!running.ok()) return running.status();
  const Problem& p = product.problem;
  if (absl::Status status = CheckHopperSizes(p); !status.ok()) return status;
  const auto products = static_cast<int64_t>(p.extents.size());
  const int64_t columns = (p.n + kTileColumns - 1) / kTileColumns;
  // Each product may have a tile row that is not full.
  if ((p.m / kTileRows + products) * columns > kHopperMost) {
    return absl::InvalidArgumentError(absl::StrCat("m x n of a group is ", p.m, " x ", p.n,
                                                   ", more tiles than one launch takes"));
  }
  const absl::StatusOr<HopperDescription> described =
      DescribeHopper<Variant>(product, {.a = 1, .b = products, .d = 1});
  if (!described.ok()) return described.status();
  // No product has more tile rows than all have together.
  const int64_t group_m = launch.params[0] == kOwnChoice
                              ? SquareGroup(kTileRows, kTileColumns, *running)
                              : launch.params[0];
  const int group = static_cast<int>(std::min(group_m, p.m / kTileRows + 1));
  int64_t row = 0;
  for (int64_t first = 0; first < products; first += HopperStackOrder::kMostProducts) {
    const absl::Span<const int64_t> extents = p.extents.subspan(
        static_cast<size_t>(first), static_cast<size_t>(HopperStackOrder::kMostProducts));
    const HopperStackOrder order(extents, row, static_cast<int>(first), kTileRows,
                                 static_cast<int>(columns), group);
    for (const int64_t rows : extents) row += rows;
    if (order.tiles() == 0) continue;
    typename Tiles::Arguments arguments = MakeHopperArguments<Variant>(product, *described, order);
    const bool bias_of_each = p.bias == BiasAxis::kColumns;
    arguments.strides = {.c = 0, .bias = bias_of_each ? arguments.strides.bias : 0, .d = 0};
    const absl::Status status = EnqueueHopperKernel<Tiles, kKernel>(
        product, described->maps, arguments, std::min(order.tiles(), *running), launch.stream);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace gemm
