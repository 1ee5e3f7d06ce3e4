// The blocks of a grid: overlap with the next kernel, flags between blocks, and indices.
#pragma once

#include <cstdint>

namespace gemm::ptx {

// Programmatic stream serialisation (PTX ISA 7.8, sm_90): if the launch asks for it, a kernel may
// begin while the one before it in the stream ends. This waits until all earlier work is done and
// visible. Touch no memory that other kernels use before it.
__device__ __forceinline__ void AwaitKernelBefore() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

// The next kernel may begin when all blocks have called this or have ended.
__device__ __forceinline__ void AllowNextKernel() {
  asm volatile("griddepcontrol.launch_dependents;");
}

// Raises a flag in global memory, which tells other blocks that this block's earlier writes are
// visible (PTX ISA 6.0). Called by one thread, after a barrier of the threads that wrote.
__device__ __forceinline__ void RaiseFlag(uint32_t* flag) {
  asm volatile("fence.acq_rel.gpu;\nst.relaxed.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
}

// Waits until the flag, which was 0, is raised. The block that raises it is running. Called by one
// thread, before a barrier of the threads that read.
__device__ __forceinline__ void AwaitFlag(const uint32_t* flag) {
  uint32_t raised = 0;
  while (raised == 0) {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(raised) : "l"(flag) : "memory");
  }
}

// Read blockIdx.x and threadIdx.x again (PTX ISA 1.0), so that values derived from them are
// computed where they are used, and take no register in the loops before.
__device__ __forceinline__ unsigned BlockAnew() {
  unsigned block;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
  return block;
}

__device__ __forceinline__ int ThreadAnew() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

}  // namespace gemm::ptx
