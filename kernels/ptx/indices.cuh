// Reads blockIdx.x and threadIdx.x again (PTX ISA 1.0). Values that follow from them are
// then computed where they are used, and take no register in the loops before.
#pragma once

namespace gemm::ptx {

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
