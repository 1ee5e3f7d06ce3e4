// The stages of shared memory between the thread that loads and the warps that multiply, and that
// thread.
#pragma once

#include <cstdint>

#include "kernels/core/tile_order.h"
#include "kernels/hopper/arguments.h"
#include "kernels/hopper/f32/config.h"
#include "kernels/hopper/pipeline.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/tma.cuh"

namespace gemm {

// The barrier `full` of a stage ends a phase when its tiles have arrived; `free` ends one when all
// warps have read them.
template <class Variant>
struct HopperF32Stages {
  static constexpr HopperF32Config kConfig = Variant::kConfig;

  uint32_t begin;  // a multiple of 1024

  __device__ uint32_t tile_a(int stage) const { return begin + stage * kConfig.stage_bytes(); }
  __device__ uint32_t tile_b(int stage) const { return tile_a(stage) + kConfig.tile_a_bytes(); }
  __device__ uint32_t full(int stage) const {
    return begin + kConfig.stages * kConfig.stage_bytes() + stage * ptx::kBarrierBytes;
  }
  __device__ uint32_t free(int stage) const { return full(kConfig.stages + stage); }

  // Called by one thread.
  __device__ void InitBarriers() const {
    for (int stage = 0; stage < kConfig.stages; ++stage) {
      ptx::InitBarrier(full(stage), 1);
      // Each warp that multiplies arrives once.
      ptx::InitBarrier(free(stage), kConfig.consumers() / 32);
    }
    ptx::FenceBarrierInit();
  }
};

// Keeps the stages filled by TMA. Called by one thread of the block. A tile is one box (maps.h).
template <class Tiles, bool kTransA, bool kTransB>
__device__ __forceinline__ void ProduceF32(const HopperMaps& maps,
                                           const HopperF32Stages<typename Tiles::Variant>& stages,
                                           Tiles tiles) {
  using Variant = typename Tiles::Variant;
  constexpr HopperF32Config kConfig = Variant::kConfig;
  HopperPlace<kConfig.stages> place;
  for (; tiles.more(); tiles.Next()) {
    const TileCoord tile = tiles.tile();
    const int line_a = tiles.line_a(tile), line_b = tiles.line_b(tile);
    const int matrix_a = tiles.matrix_a(), matrix_b = tiles.matrix_b();
    for (int k_tile = tiles.first_k(), end = tiles.end_k(); k_tile < end; ++k_tile) {
      const int k = k_tile * HopperF32Config::kTileK;
      // All stages are free at first: the phase before the first one has ended.
      ptx::WaitForPhase(stages.free(place.stage), place.parity ^ 1);
      const uint32_t full = stages.full(place.stage);
      ptx::ArriveExpecting(full, kConfig.stage_bytes());
      ptx::LoadBox(stages.tile_a(place.stage), &maps.a, kTransA ? line_a : k, kTransA ? k : line_a,
                   matrix_a, full);
      ptx::LoadBox(stages.tile_b(place.stage), &maps.b, kTransB ? k : line_b, kTransB ? line_b : k,
                   matrix_b, full);
      place.Next();
    }
  }
}

}  // namespace gemm
