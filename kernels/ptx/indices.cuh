// blockIdx.x and threadIdx.x read anew (PTX ISA 1.0): what follows from them is
// computed where it is used, and takes no register in the loops before that.
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
