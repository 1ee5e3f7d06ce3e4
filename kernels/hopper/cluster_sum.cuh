// Adds up the accumulators of the blocks that share a tile of D. Each block multiplied a part of k.
// They read each other's shared memory. The order is the same every time.
#pragma once

#include <cstdint>

#include "kernels/hopper/config.h"
#include "kernels/hopper/store.cuh"
#include "kernels/ptx/cluster.cuh"

namespace gemm {

// Stores four accumulators to shared memory.
__device__ __forceinline__ void StoreQuad(uint32_t shared, const float* quad) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "f"(quad[0]), "f"(quad[1]),
               "f"(quad[2]), "f"(quad[3])
               : "memory");
}
__device__ __forceinline__ void StoreQuad(uint32_t shared, const int32_t* quad) {
  asm volatile("st.shared.v4.s32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(quad[0]), "r"(quad[1]),
               "r"(quad[2]), "r"(quad[3])
               : "memory");
}

// Adds four accumulators that were loaded from there. Integers wrap.
__device__ __forceinline__ void AddQuad(const float4& loaded, float* sums) {
  sums[0] += loaded.x;
  sums[1] += loaded.y;
  sums[2] += loaded.z;
  sums[3] += loaded.w;
}
__device__ __forceinline__ void AddQuad(const float4& loaded, int32_t* sums) {
  const float bits[4] = {loaded.x, loaded.y, loaded.z, loaded.w};
#pragma unroll
  for (int x = 0; x < 4; ++x) {
    WrappingS32 sum(sums[x]);
    sum += WrappingS32(__float_as_int(bits[x]));
    sums[x] = sum.value();
  }
}

// Each of the first adders() blocks adds up a share of the columns. `sums` holds them in the layout
// in which `accumulators` holds all.
template <class Variant, int kBlocksM, int kTileN>
struct ClusterSum {
  static constexpr HopperConfig kConfig = Variant::kConfig;
  static constexpr int kPartN = kTileN / kConfig.adders();
  static constexpr int kThreads = kConfig.consumers * ptx::kWarpgroupThreads;
  static constexpr int kQuads = kTileN / 8;  // of a thread, in a block of 64 rows
  static constexpr int kPartQuads = kPartN / 8;

  using Register = AccumulatorRegister<kConfig.accumulator>;
  Register sums[kBlocksM][kPartN / 2];

  // A thread's four accumulators lie beside those of the next thread.
  __device__ static uint32_t QuadAt(uint32_t shared, int block, int quad, int thread) {
    return shared + ((block * kQuads + quad) * kThreads + thread) * 16;
  }

  // Writes the parts that other blocks add up into the stages, which are no longer in use. A
  // barrier of the cluster must follow.
  __device__ static void Write(const Register (&accumulators)[kBlocksM][kTileN / 2],
                               uint32_t shared, int thread, int own) {
#pragma unroll
    for (int block = 0; block < kBlocksM; ++block) {
#pragma unroll
      for (int quad = 0; quad < kQuads; ++quad) {
        if (quad / kPartQuads == own) continue;
        StoreQuad(QuadAt(shared, block, quad, thread), &accumulators[block][4 * quad]);
      }
    }
  }

  // Called after that barrier. Another one must follow before a block ends. A block adds the
  // others' accumulators to its own in the order of their indices, starting after its own index and
  // wrapping around.
  __device__ void Add(const Register (&accumulators)[kBlocksM][kTileN / 2], uint32_t shared,
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
          AddQuad(loaded, &sums[block][4 * quad]);
        }
      }
    }
  }
};

}  // namespace gemm
