// cp.async: asynchronous copies from global to shared memory, without registers (PTX ISA
// 7.0, sm_80 and up).
#pragma once

#include <cstdint>

namespace gemm::ptx {

// The address of shared memory as the PTX instructions take it.
__device__ __forceinline__ uint32_t SharedAddress(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

// Copies `valid_bytes` (0 to kBytes) and fills the rest of the kBytes in shared memory
// with zeros. Both addresses are multiples of kBytes. `global` must be readable even where
// valid_bytes is 0. Copies of 16 bytes bypass the L1.
template <int kBytes = 16>
__device__ __forceinline__ void CpAsync(uint32_t shared, const void* global, int valid_bytes) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
                 "r"(valid_bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(global),
                 "n"(kBytes), "r"(valid_bytes)
                 : "memory");
  }
}

// Ends a group of copies.
__device__ __forceinline__ void CpAsyncCommit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most kPending groups of this thread are under way. Other threads' copies
// are visible after a barrier.
template <int kPending>
__device__ __forceinline__ void CpAsyncWait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace gemm::ptx
