// Thread block clusters: blocks that run at the same time and reach each other's shared memory
// (PTX ISA 7.8, sm_90).
#pragma once

#include <cstdint>

namespace gemm::ptx {

// This block's index in its cluster.
__device__ __forceinline__ uint32_t BlockOfCluster() {
  uint32_t block;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(block));
  return block;
}

// A barrier of all threads of the cluster, which orders their accesses to shared memory.
__device__ __forceinline__ void ClusterBarrier() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}

// Four floats at a shared address of a block of the cluster.
__device__ __forceinline__ float4 LoadOfBlock(uint32_t shared, uint32_t block) {
  float4 loaded;
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %4, %5;\n"
      "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [remote];\n}"
      : "=f"(loaded.x), "=f"(loaded.y), "=f"(loaded.z), "=f"(loaded.w)
      : "r"(shared), "r"(block)
      : "memory");
  return loaded;
}

}  // namespace gemm::ptx
