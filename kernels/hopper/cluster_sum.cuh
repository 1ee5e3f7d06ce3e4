// Adds the accumulators of the blocks that share a tile of D, each of which multiplied a part of
// k. They read each other's shared memory. The order is the same every time.
#pragma once

#include <cstdint>

#include "kernels/hopper/config.h"
#include "kernels/hopper/store.cuh"
#include "kernels/ptx/cluster.cuh"

namespace gemm {

// Each of the first blocks, or the first one alone, adds up some of the columns: `sums` holds
// them, as `accumulators` holds all.
template <class Variant, int kBlocksM, int kTileN>
struct ClusterSum {
  static constexpr HopperConfig kConfig = Variant::kConfig;
  static constexpr int kPartN = kTileN / kConfig.adders();
  static constexpr int kThreads = kConfig.consumers * ptx::kWarpgroupThreads;
  static constexpr int kQuads = kTileN / 8;  // of a thread, in a block of 64 rows
  static constexpr int kPartQuads = kPartN / 8;

  float sums[kBlocksM][kPartN / 2];

  // A thread's four accumulators lie beside those of the next thread.
  __device__ static uint32_t QuadAt(uint32_t shared, int block, int quad, int thread) {
    return shared + ((block * kQuads + quad) * kThreads + thread) * 16;
  }

  // The parts of others, into the stages, which nobody uses any more. A barrier of the cluster
  // follows.
  __device__ static void Write(const float (&accumulators)[kBlocksM][kTileN / 2], uint32_t shared,
                               int thread, int own) {
#pragma unroll
    for (int block = 0; block < kBlocksM; ++block) {
#pragma unroll
      for (int quad = 0; quad < kQuads; ++quad) {
        if (quad / kPartQuads == own) continue;
        const float* const acc = &accumulators[block][4 * quad];
        asm volatile(
            "st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(QuadAt(shared, block, quad, thread)),
            "f"(acc[0]), "f"(acc[1]), "f"(acc[2]), "f"(acc[3])
            : "memory");
      }
    }
  }

  // Behind that barrier. Another one follows, before a block ends. A block adds the others' to
  // its own in the order of their indices behind its own.
  __device__ void Add(const float (&accumulators)[kBlocksM][kTileN / 2], uint32_t shared,
                      int thread, int own, int sharer) {
#pragma unroll
    for (int block = 0; block < kBlocksM; ++block) {
#pragma unroll
      for (int x = 0; x < kPartN / 2; ++x) {
        sums[block][x] = accumulators[block][x];
#pragma unroll
        for (int part = 1; part < kConfig.adders(); ++part) {
          if (part == own) sums[block][x] = accumulators[block][part * kPartN / 2 + x];
        }
      }
    }
    for (int step = 1; step < kConfig.split; ++step) {
      const int other = (own + step) % kConfig.split * kConfig.sharers() + sharer;
#pragma unroll
      for (int block = 0; block < kBlocksM; ++block) {
#pragma unroll
        for (int quad = 0; quad < kPartQuads; ++quad) {
          const float4 loaded = ptx::LoadOfBlock(
              QuadAt(shared, block, own * kPartQuads + quad, thread), static_cast<uint32_t>(other));
          float* const sum = &sums[block][4 * quad];
          sum[0] += loaded.x;
          sum[1] += loaded.y;
          sum[2] += loaded.z;
          sum[3] += loaded.w;
        }
      }
    }
  }
};

}  // namespace gemm
