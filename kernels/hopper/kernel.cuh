// The Hopper kernel. One warpgroup loads tiles by TMA, the others multiply them by wgmma, and
// store. Between them is a ring of stages with barriers that count bytes. Blocks are persistent and
// take one tile of D after the other: the loads of the next one start while this one is stored.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/hopper/arguments.h"
#include "kernels/hopper/cluster_sum.cuh"
#include "kernels/hopper/config.h"
#include "kernels/hopper/multiply.cuh"
#include "kernels/hopper/pipeline.cuh"
#include "kernels/hopper/producer.cuh"
#include "kernels/hopper/scales.cuh"
#include "kernels/hopper/store.cuh"
#include "kernels/ptx/grid.cuh"

namespace gemm {

#if GEMM_HAS_WGMMA

// Barriers of a block. Numbers 1 to 3 are those of the warpgroups that multiply.
inline constexpr int kAllConsumers = 4;
inline constexpr int kAllThreads = 5;

// Called by a warpgroup that multiplies.
template <class Tiles, bool kTransA, bool kTransB>
__device__ __forceinline__ void Consume(const HopperMaps& maps,
                                        const typename Tiles::Arguments& arguments,
                                        const Epilogue<DType::kF32>& epilogue, DType output,
                                        const HopperShared<typename Tiles::Variant>& shared,
                                        Tiles tiles) {
  using Variant = typename Tiles::Variant;
  constexpr HopperConfig kConfig = Variant::kConfig;
  using Product = HopperProduct<Variant, kTransA, kTransB>;
  // The shuffle tells the compiler that the value is the same in a warp.
  const int consumer = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0) - 1;
  const WarpgroupThread thread{.index = static_cast<int>(threadIdx.x) % 128,
                               .barrier = 1 + consumer};
  const int first_block = kConfig.ping_pong() ? 0 : consumer * Product::kBlocksM;
  const int first_sharer = tiles.part() * kConfig.sharers();
  StoreBoxes<Variant> boxes(shared.boxes(consumer), thread);
  HopperPlace<kConfig.stages> place;
  // The rows of D in this warpgroup's part of a tile.
  constexpr int kRowsOfD = kConfig.swap ? kConfig.tile_n : Product::kBlocksM * 64;
  const auto store = [&](const auto& accumulators, const BoxOfD& at) {
    // TMA would write over the next product's rows.
    if (!arguments.only_scales || (Tiles::kStacked && at.row + kRowsOfD > tiles.end_row())) {
      // The tiles before and after may leave by TMA. In other launches, all leave the same way.
      if constexpr (Tiles::kStacked) boxes.Restart();
      StoreAnyEpilogue<Variant>(accumulators, boxes, epilogue, output, at, tiles.end_row(),
                                arguments.n, arguments.strides, thread);
      if constexpr (Tiles::kStacked) boxes.Restart();
      return;
    }
    const BoxOfD in_d{tiles.matrix_d(), at.row, at.column};
    VisitHopperOutput<Variant>(output, [&]<DType kD>() {
      if (kD == DType::kS32 || epilogue.alpha == 1) {
        StoreScaled<Variant, kD, true>(accumulators, boxes, &maps.d, Retyped<kD>(epilogue), in_d,
                                       thread);
      } else {
        StoreScaled<Variant, kD, false>(accumulators, boxes, &maps.d, Retyped<kD>(epilogue), in_d,
                                        thread);
      }
    });
  };
  HopperTurns turns(shared.turns(), consumer);
  // In ping-pong the two warpgroups take tiles in turns.
  const auto skip_tile = [&] {
    place.Skip(arguments.k_tiles);
    tiles.Next();
  };
  if (kConfig.ping_pong() && consumer == 1) skip_tile();
  while (tiles.more()) {
    const TileCoord tile = tiles.tile();
    Product product;
    if constexpr (Tiles::kStacked && kConfig.consumers > 1 && !kConfig.ping_pong() &&
                  !kConfig.swap) {
      // This warpgroup has no rows of the product. It leaves the tensor cores to the others.
      if (tiles.line_a(tile) + first_block * 64 >= tiles.end_row()) {
        product.Pass(shared, place, arguments.k_tiles, first_sharer);
        tiles.Next();
        continue;
      }
    }
    if constexpr (kConfig.ping_pong()) turns.Await();
    const int k_tiles = tiles.end_k() - tiles.first_k();
    if constexpr (kHasScales<Tiles>) {
      product.Start(
          shared, place, k_tiles, first_block, first_sharer,
          HopperTileScales<Variant, Product::kBlocksM, Tiles::kOfB>(
              arguments.scales_a, arguments.scales_b, tiles.line_a(tile) + first_block * 64,
              tiles.line_b(tile), tiles.first_k(), shared.end()));
    } else {
      product.Start(shared, place, k_tiles, first_block, first_sharer, NoScales<Variant>());
    }
    if constexpr (kConfig.ping_pong()) turns.Pass();
    product.Finish(first_sharer);
    const int row = tiles.line_a(tile) + first_block * 64, column = tiles.line_b(tile);
    BoxOfD at{tiles.product(), kConfig.swap ? column : row, kConfig.swap ? row : column};
    if constexpr (kConfig.split > 1) {
      using Sum = ClusterSum<Variant, Product::kBlocksM, kConfig.tile_n>;
      const int among = static_cast<int>(threadIdx.x) - 128;
      // Waits until the whole block is done with its stages.
      ptx::AwaitBarrier<Sum::kThreads>(kAllConsumers);
      Sum::Write(product.accumulators, shared.begin, among, tiles.part());
      ptx::ClusterBarrier();
      if (tiles.part() < kConfig.adders()) {
        Sum sum;
        sum.Add(product.accumulators, shared.begin, among, tiles.part(), tiles.sharer());
        at.column += tiles.part() * Sum::kPartN;
        store(sum.sums, at);
      }
    } else {
      store(product.accumulators, at);
    }
    tiles.Next();
    if (kConfig.ping_pong()) skip_tile();
  }
  boxes.Finish();
}

#endif  // GEMM_HAS_WGMMA

// `Tiles` is HopperTiles or HopperStackedTiles of a Variant, which has a constexpr HopperConfig
// kConfig. The epilogue's element type is `output`.
template <class Tiles, bool kTransA, bool kTransB>
__global__ __launch_bounds__(
    Tiles::Variant::kConfig.threads(),
    Tiles::Variant::kConfig
        .blocks_per_sm) void HopperKernel(const __grid_constant__ HopperMaps maps,
                                          const typename Tiles::Arguments arguments,
                                          const Epilogue<DType::kF32> epilogue, DType output) {
#if GEMM_HAS_WGMMA
  using Variant = typename Tiles::Variant;
  constexpr HopperConfig kConfig = Variant::kConfig;
  extern __shared__ __align__(1024) std::byte shared_memory[];
  const HopperShared<Variant> shared{
      static_cast<uint32_t>(__cvta_generic_to_shared(shared_memory))};
  const uint32_t block = kConfig.cluster() > 1 ? ptx::BlockOfCluster() : 0;
  const bool loads = threadIdx.x < ptx::kWarpgroupThreads;
  if (threadIdx.x == 0) {
    ptx::PrefetchTensorMap(&maps.a);
    ptx::PrefetchTensorMap(&maps.b);
    shared.InitBarriers();
  }
  __syncwarp();
  // No thread may use the barriers of the stages before they are initialised. The warpgroup that
  // loads initialises them, and need not wait, except for those of other blocks.
  if constexpr (kConfig.sharers() > 1) {
    ptx::ClusterBarrier();
  } else if (loads) {
    ptx::ArriveAtBarrier<kConfig.threads()>(kAllThreads);
  } else {
    ptx::AwaitBarrier<kConfig.threads()>(kAllThreads);
  }
  ptx::AwaitKernelBefore();
  Tiles tiles(arguments, block);
  if (loads) {
    if constexpr (kConfig.moves_registers()) ptx::KeepRegisters<kConfig.loading_registers()>();
    if (threadIdx.x == 0) {
      Produce<Tiles, kTransA, kTransB>(maps, shared, tiles);
      // Only the products of the last stages and the stores remain.
      ptx::AllowNextKernel();
    }
    __syncwarp();
    if constexpr (kConfig.split > 1) ptx::ClusterBarrier();  // the one before the sum
  } else {
    if constexpr (kConfig.moves_registers()) ptx::TakeRegisters<kConfig.multiplying_registers()>();
    Consume<Tiles, kTransA, kTransB>(maps, arguments, epilogue, output, shared, tiles);
  }
  // Other blocks may still arrive at this block's barriers, or read its shared memory.
  if constexpr (kConfig.cluster() > 1) ptx::ClusterBarrier();
#else
  __trap();  // the rows say so (DeviceCode::kSm90a), and are refused before the launch
#endif
}

}  // namespace gemm
