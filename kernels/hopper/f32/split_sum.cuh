// Adds up the accumulators of the blocks that share a tile of D. Each block multiplied a part of k.
// They read each other's shared memory. Every block adds the parts in the order of k.
#pragma once

#include <cstdint>

#include "kernels/hopper/cluster_sum.cuh"
#include "kernels/hopper/f32/config.h"
#include "kernels/ptx/cluster.cuh"

namespace gemm {

// A block adds up some rows of each thread's part of the tile.
template <class Variant>
struct HopperF32Sum {
  static constexpr HopperF32Config kConfig = Variant::kConfig;
  static constexpr int kRows = kConfig.thread_m / kConfig.split;
  static constexpr int kQuads = kConfig.thread_n / 4;  // of a row

  float sums[kRows][kConfig.thread_n];

  // A thread's four accumulators lie beside those of the next thread.
  __device__ static uint32_t QuadAt(uint32_t shared, int row, int quad) {
    return shared + ((row * kQuads + quad) * kConfig.consumers() + threadIdx.x) * 16;
  }

  // Writes into the stages, which are no longer in use. A barrier of the cluster must follow.
  __device__ static void Write(const float (&accumulators)[kConfig.thread_m][kConfig.thread_n],
                               uint32_t shared) {
#pragma unroll
    for (int row = 0; row < kConfig.thread_m; ++row) {
#pragma unroll
      for (int quad = 0; quad < kQuads; ++quad) {
        StoreQuad(QuadAt(shared, row, quad), &accumulators[row][4 * quad]);
      }
    }
  }

  // Called after that barrier. Another one must follow before a block ends.
  __device__ void Add(uint32_t shared, int own) {
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
#pragma unroll
      for (int quad = 0; quad < kQuads; ++quad) {
        const uint32_t at = QuadAt(shared, own * kRows + row, quad);
        float* const sum = &sums[row][4 * quad];
        const float4 first = ptx::LoadOfBlock(at, 0);
        sum[0] = first.x, sum[1] = first.y, sum[2] = first.z, sum[3] = first.w;
#pragma unroll
        for (int part = 1; part < kConfig.split; ++part) {
          AddQuad(ptx::LoadOfBlock(at, static_cast<uint32_t>(part)), sum);
        }
      }
    }
  }
};

}  // namespace gemm
