// The stages of shared memory between the warpgroup that loads and those that multiply.
#pragma once

#include <cstdint>

#include "kernels/hopper/config.h"
#include "kernels/ptx/mbarrier.cuh"

namespace gemm {

// A block's shared memory: the stages, the boxes for stores, the barriers. `full` of a stage ends a
// phase when its tiles have arrived; `free` ends one when all warps have read them.
template <class Variant>
struct HopperShared {
  static constexpr HopperConfig kConfig = Variant::kConfig;

  uint32_t begin;  // a multiple of 1024

  __device__ uint32_t tile_a(int stage) const { return begin + stage * kConfig.stage_bytes(); }
  __device__ uint32_t tile_b(int stage) const { return tile_a(stage) + kConfig.tile_a_bytes(); }
  __device__ uint32_t boxes(int consumer) const {
    return begin + kConfig.stages * kConfig.stage_bytes() +
           consumer * kConfig.boxes * kConfig.box_bytes();
  }
  __device__ uint32_t full(int stage) const {
    return boxes(kConfig.consumers) + stage * ptx::kBarrierBytes;
  }
  __device__ uint32_t free(int stage) const { return full(kConfig.stages + stage); }
  __device__ uint32_t turns() const { return free(kConfig.stages); }
  // The end of all of it; a multiple of 16.
  __device__ uint32_t end() const { return begin + kConfig.shared_bytes(); }

  // Called by one thread.
  __device__ void InitBarriers() const {
    // Each warp that reads a stage arrives once, in every block that loads a part of it.
    constexpr int kReaders = kConfig.ping_pong() ? 4 : 4 * kConfig.consumers;
    for (int stage = 0; stage < kConfig.stages; ++stage) {
      ptx::InitBarrier(full(stage), 1);
      ptx::InitBarrier(free(stage), kReaders * kConfig.sharers());
    }
    for (int consumer = 0; consumer < 2; ++consumer) {
      ptx::InitBarrier(turns() + consumer * ptx::kBarrierBytes, 4);
    }
    ptx::FenceBarrierInit();
  }
};

// The turns of two warpgroups: one at a time reads the stages. Without turns the second one would
// await a stage two phases ahead, but a parity only tells neighbouring phases apart.
class HopperTurns {
 public:
  // Consumer 0 begins.
  __device__ HopperTurns(uint32_t barriers, int consumer)
      : own_(barriers + consumer * ptx::kBarrierBytes),
        other_(barriers + (1 - consumer) * ptx::kBarrierBytes),
        parity_(consumer == 0 ? 1 : 0) {}

  __device__ void Await() {
    ptx::WaitForPhase(own_, parity_);
    parity_ ^= 1;
  }
  // Called by the whole warpgroup.
  __device__ void Pass() {
    if (threadIdx.x % 32 == 0) ptx::Arrive(other_);
  }

 private:
  const uint32_t own_;
  const uint32_t other_;
  uint32_t parity_;
};

// A place in the ring of stages.
template <int kStages>
struct HopperPlace {
  int stage = 0;
  uint32_t parity = 0;

  __device__ void Next() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
  __device__ void Skip(int places) {
    stage += places;
    parity ^= static_cast<uint32_t>(stage / kStages) & 1;
    stage %= kStages;
  }
};

}  // namespace gemm
