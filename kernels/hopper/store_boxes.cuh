// The boxes in shared memory through which a warpgroup stores its part of D.
#pragma once

#include <cstdint>

#include "kernels/hopper/config.h"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup.cuh"

namespace gemm {

// A thread's place in its warpgroup.
struct WarpgroupThread {
  int index;    // 0 to 127
  int barrier;  // of its warpgroup

  __device__ int warp() const { return index / 32; }
  __device__ int lane() const { return index % 32; }
};

// The boxes of a warpgroup: a ring of two batches, or one batch.
template <class Variant>
class StoreBoxes {
  static constexpr int kBoxes = Variant::kConfig.boxes;
  static constexpr int kBoxBytes = Variant::kConfig.box_bytes();

 public:
  __device__ StoreBoxes(uint32_t shared, const WarpgroupThread& thread)
      : shared_(shared), thread_(thread) {}

  // Boxes that leave together, for a D of kParts boxes.
  template <int kParts>
  static constexpr int kBatch = kBoxes >= kParts ? kParts : kBoxes / 2;

  // The first box of the next batch. Waits until the copies out of it are done.
  template <int kSize>
  __device__ __forceinline__ uint32_t Next() {
    constexpr bool kOneBatch = 2 * kSize > kBoxes;
    if (thread_.index == 0) ptx::StoreBoxWaitRead<kOneBatch ? 0 : 1>();
    ptx::WarpgroupBarrier(thread_.barrier);
    if (!kOneBatch) first_ = kSize - first_;
    return shared_ + first_ * kBoxBytes;
  }

  // Called by all threads after they have written the batch. `copy(shared)` copies it.
  template <class Copy>
  __device__ __forceinline__ void Leave(const Copy& copy) {
    ptx::FenceForStoreBox();
    ptx::WarpgroupBarrier(thread_.barrier);
    if (thread_.index == 0) {
      copy(shared_ + first_ * kBoxBytes);
      ptx::StoreBoxCommit();
    }
  }

  // Waits until all copies have read the boxes.
  __device__ void Finish() {
    if (thread_.index == 0) ptx::StoreBoxWaitRead<0>();
  }

  // Called between batches of different sizes, or whose boxes leave in different ways. Waits until
  // no copy is under way, and restarts the ring.
  __device__ __forceinline__ void Restart() {
    Finish();
    first_ = 0;
  }

 private:
  const uint32_t shared_;
  const WarpgroupThread thread_;
  int first_ = 0;  // box of the batch
};

}  // namespace gemm
