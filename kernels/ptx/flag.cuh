// Flags in global memory by which a block tells others that what it wrote before is there (PTX ISA
// 6.0).
#pragma once

#include <cstdint>

namespace gemm::ptx {

// By one thread, behind a barrier of those that wrote.
__device__ __forceinline__ void RaiseFlag(uint32_t* flag) {
  asm volatile("fence.acq_rel.gpu;\nst.relaxed.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
}

// By one thread, before a barrier of those that read. The flag was 0, and whoever raises it runs.
__device__ __forceinline__ void AwaitFlag(const uint32_t* flag) {
  uint32_t raised = 0;
  while (raised == 0) {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(raised) : "l"(flag) : "memory");
  }
}

}  // namespace gemm::ptx
