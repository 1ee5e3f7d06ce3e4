// The Hopper kernel of f32 on CUDA cores. One thread loads tiles by TMA; the other warpgroups
// multiply them by FFMA, and store. Between them is a ring of stages with barriers that count
// bytes. Blocks are persistent and take one tile of D after the other: the loads of the next one
// start while this one is stored.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/hopper/arguments.h"
#include "kernels/hopper/f32/multiply.cuh"
#include "kernels/hopper/f32/split_sum.cuh"
#include "kernels/hopper/f32/stages.cuh"
#include "kernels/hopper/f32/store.cuh"
#include "kernels/hopper/f32/stream.cuh"
#include "kernels/hopper/schedule.cuh"
#include "kernels/ptx/grid.cuh"
#include "kernels/ptx/warpgroup.cuh"
#include "kernels/ptx/wgmma.cuh"

namespace gemm {

#if GEMM_HAS_WGMMA  // then registers move between warpgroups, too

// Called by a warp that multiplies.
template <class Tiles, bool kTransA, bool kTransB>
__device__ __forceinline__ void ConsumeF32(const typename Tiles::Arguments& arguments,
                                           const Epilogue<DType::kF32>& epilogue,
                                           const HopperF32Stages<typename Tiles::Variant>& stages,
                                           Tiles tiles) {
  using Variant = typename Tiles::Variant;
  constexpr HopperF32Config kConfig = Variant::kConfig;
  constexpr int kAllConsumers = 1;  // a barrier
  // The shuffle tells the compiler that the value is the same in a warp.
  const HopperF32Thread<Variant> thread{
      .warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 32, 0),
      .lane = static_cast<int>(threadIdx.x) % 32};
  HopperPlace<kConfig.stages> place;
  for (; tiles.more(); tiles.Next()) {
    HopperF32Product<Variant, kTransA, kTransB> product(thread);
    product.Multiply(stages, place, tiles.end_k() - tiles.first_k());
    if constexpr (kStreams<Tiles>) {
      if (!tiles.template Complete<kAllConsumers>(product.accumulators)) continue;
    }
    const TileCoord tile = tiles.tile();
    const HopperF32Store<Variant, kTransA, kTransB> store(
        thread, {tiles.line_a(tile), tiles.line_b(tile), arguments.m, arguments.n});
    const auto store_rows = [&](const auto& accumulators, int first) {
      const auto of_product = OfProduct(epilogue, arguments.strides, tiles.matrix_d());
      if (arguments.only_scales) {
        store.Scaled(accumulators, first, of_product);
      } else {
        store.Finished(accumulators, first, of_product);
      }
    };
    if constexpr (kConfig.split > 1) {
      using Sum = HopperF32Sum<Variant>;
      // Waits until the whole block is done with its stages.
      ptx::AwaitBarrier<kConfig.consumers()>(kAllConsumers);
      Sum::Write(product.accumulators, stages.begin);
      ptx::ClusterBarrier();
      Sum sum;
      sum.Add(stages.begin, tiles.part());
      store_rows(sum.sums, tiles.part() * Sum::kRows);
    } else {
      store_rows(product.accumulators, 0);
    }
  }
}

#endif  // GEMM_HAS_WGMMA

// `Tiles` is HopperTiles or HopperF32StreamTiles of a Variant, which has a constexpr
// HopperF32Config kConfig. The map of D is not used. Nor is the output's type, which is f32.
template <class Tiles, bool kTransA, bool kTransB>
__global__ __launch_bounds__(
    Tiles::Variant::kConfig.threads(),
    Tiles::Variant::kConfig
        .blocks_per_sm) void HopperF32Kernel(const __grid_constant__ HopperMaps maps,
                                             const typename Tiles::Arguments arguments,
                                             const Epilogue<DType::kF32> epilogue, DType) {
#if GEMM_HAS_WGMMA
  using Variant = typename Tiles::Variant;
  constexpr HopperF32Config kConfig = Variant::kConfig;
  constexpr int kAllThreads = 2;  // a barrier
  extern __shared__ __align__(1024) std::byte shared_memory[];
  const HopperF32Stages<Variant> stages{
      static_cast<uint32_t>(__cvta_generic_to_shared(shared_memory))};
  const uint32_t block = kConfig.cluster() > 1 ? ptx::BlockOfCluster() : 0;
  __shared__ int index;  // of the block, where it streams
  const bool loads = threadIdx.x >= kConfig.consumers();
  if (threadIdx.x == kConfig.consumers()) {
    ptx::PrefetchTensorMap(&maps.a);
    ptx::PrefetchTensorMap(&maps.b);
    stages.InitBarriers();
    if constexpr (kStreams<Tiles>) index = Tiles::TakeIndex(arguments);
  }
  __syncwarp();
  // No thread may use the barriers of the stages before they are initialised. The warpgroup that
  // loads initialises them, and need not wait.
  if (loads) {
    ptx::ArriveAtBarrier<kConfig.threads()>(kAllThreads);
  } else {
    ptx::AwaitBarrier<kConfig.threads()>(kAllThreads);
  }
  ptx::AwaitKernelBefore();
  const Tiles tiles(arguments, kStreams<Tiles> ? __shfl_sync(~0u, index, 0) : block);
  if (loads) {
    ptx::KeepRegisters<HopperF32Config::kLoadingRegisters>();
    if (threadIdx.x == kConfig.consumers()) {
      ProduceF32<Tiles, kTransA, kTransB>(maps, stages, tiles);
      // Only the products of the last stages and the stores remain.
      ptx::AllowNextKernel();
    }
    __syncwarp();
    if constexpr (kConfig.split > 1) ptx::ClusterBarrier();  // the one before the sum
  } else {
    ptx::TakeRegisters<kConfig.multiplying_registers()>();
    ConsumeF32<Tiles, kTransA, kTransB>(arguments, epilogue, stages, tiles);
  }
  // Other blocks may still arrive at the barrier, or read this block's shared memory.
  if constexpr (kConfig.cluster() > 1) ptx::ClusterBarrier();
#else
  __trap();  // the rows say so (DeviceCode::kSm90a), and are refused before the launch
#endif
}

}  // namespace gemm
