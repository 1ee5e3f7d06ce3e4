// Barriers, registers and stores of the four warps of a warpgroup (sm_90a).
#pragma once

#include <cstdint>

namespace gemm::ptx {

constexpr int kWarpgroupThreads = 128;

// A barrier of one warpgroup. `barrier` is 1 to 15; 0 is __syncthreads.
__device__ __forceinline__ void WarpgroupBarrier(int barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(kWarpgroupThreads) : "memory");
}

// A barrier of kThreads threads. Some only arrive and go on.
template <int kThreads>
__device__ __forceinline__ void ArriveAtBarrier(int barrier) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(kThreads) : "memory");
}
template <int kThreads>
__device__ __forceinline__ void AwaitBarrier(int barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(kThreads) : "memory");
}

// Gives registers of this warpgroup's threads back, down to kCount, or takes as many as others
// gave back. Called by all of its warps.
template <int kCount>
__device__ __forceinline__ void KeepRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
__device__ __forceinline__ void TakeRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

// Writes four 8 x 8 matrices of 16-bit elements to shared memory. For matrix x, lane l has in
// words[x] element 2 (l % 4) and the one after it of row l / 4. Lanes 8x to 8x + 7 give the
// addresses of the rows of matrix x (PTX ISA 7.8).
__device__ __forceinline__ void StMatrixX4(uint32_t shared, const uint32_t (&words)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared),
               "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}

// The same with every matrix transposed: a lane's elements are column l / 4 of rows 2 (l % 4) and
// the one after it.
__device__ __forceinline__ void StMatrixX4Transposed(uint32_t shared, const uint32_t (&words)[4]) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared),
      "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
      : "memory");
}

}  // namespace gemm::ptx
