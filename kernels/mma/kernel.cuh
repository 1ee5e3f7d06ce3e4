// The mma.sync kernel: a thread block computes tiles of D, each k-tile by k-tile,
// through pipeline stages in shared memory.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/mma/arguments.cuh"
#include "kernels/mma/pipeline.cuh"
#include "kernels/mma/store.cuh"
#include "kernels/ptx/grid.cuh"

namespace gemm::mma {

// The shared address of the stages.
template <class Variant>
__device__ __forceinline__ uint32_t SharedStages() {
  constexpr Config kConfig = Variant::kConfig;
  if constexpr (kConfig.dynamic_shared) {
    extern __shared__ __align__(128) std::byte dynamic_stages[];
    return ptx::SharedAddress(dynamic_stages);
  } else {
    __shared__ __align__(128) std::byte stages[kConfig.shared_bytes()];
    return ptx::SharedAddress(stages);
  }
}

// A thread's lane, and the position of its warp in the block.
template <class Variant>
struct WarpPlace {
  int m;
  int n;
  int lane;

  __device__ explicit WarpPlace(int thread)
      : m(thread / 32 / Variant::kConfig.warps_n),
        n(thread / 32 % Variant::kConfig.warps_n),
        lane(thread % 32) {}
};

template <class Variant>
using PipelineOf =
    std::conditional_t<Variant::kConfig.stages == 1, InTurn<Variant>,
                       std::conditional_t<Variant::kConfig.buffers == FragmentBuffers::kSingle,
                                          Pipelined<Variant>, PipelinedAhead<Variant>>>;

// `Variant` has a constexpr Config kConfig.
template <class Variant>
__global__ __launch_bounds__(
    Variant::kConfig.threads(),
    Variant::kConfig.blocks_per_sm) void MmaKernel(const __grid_constant__ Arguments args) {
  constexpr Config kConfig = Variant::kConfig;
  PipelineOf<Variant> pipeline(args, SharedStages<Variant>());
  const WarpPlace<Variant> reader(static_cast<int>(threadIdx.x));
  WarpProduct<Variant> product(reader.m, reader.n, reader.lane);
  unsigned tile = blockIdx.x;
  do {
    product.Clear();
    pipeline.MultiplyTile(product);
    if constexpr (!kConfig.persistent) tile = ptx::BlockAnew();
    const WarpPlace<Variant> place(ptx::ThreadAnew());
    const TileOrigin origin = OriginOf<Variant>(tile, args);
    const bool inside =
        origin.i + kConfig.tile_m() <= args.m && origin.j + kConfig.tile_n() <= args.n;
    StoreWarpTile(product, args.epilogue, origin.i + place.m * kConfig.warp_m(),
                  origin.j + place.n * kConfig.warp_n(), args.m, args.n, inside, place.lane);
    tile += gridDim.x;
  } while (kConfig.persistent && tile < args.tiles());
}

}  // namespace gemm::mma
