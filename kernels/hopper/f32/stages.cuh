// The stages of shared memory between the thread that loads and the warps that multiply.
#pragma once

#include <cstdint>

#include "kernels/hopper/f32/config.h"
#include "kernels/ptx/mbarrier.cuh"

namespace gemm {

// `full` of a stage ends a phase when its tiles are there; `free` when no warp reads them any more.
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

  // By one thread.
  __device__ void InitBarriers() const {
    for (int stage = 0; stage < kConfig.stages; ++stage) {
      ptx::InitBarrier(full(stage), 1);
      // Each warp leaves it.
      ptx::InitBarrier(free(stage), kConfig.consumers() / 32);
    }
    ptx::FenceBarrierInit();
  }
};

}  // namespace gemm
