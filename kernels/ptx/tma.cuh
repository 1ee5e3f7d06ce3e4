// TMA: copies of boxes between a matrix of a batch in global memory and shared memory, by a unit
// of its own (PTX ISA 8.0, sm_90). One thread starts a copy. Elements of a box beyond the matrix
// are zeros in shared memory, and are not written to global memory.
//
// A box here has rows of 128 bytes, and lies in shared memory as kernels/hopper/box.h says.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace gemm::ptx {

// Fetches the description of a matrix, a kernel's __grid_constant__ argument, ahead of its use.
__device__ __forceinline__ void PrefetchTensorMap(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Copies the box of matrix `product` that begins at (row, column) to shared memory. `barrier`
// counts its bytes.
__device__ __forceinline__ void LoadBox(uint32_t shared, const CUtensorMap* map, int column,
                                        int row, int product, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared),
      "l"(map), "r"(column), "r"(row), "r"(product), "r"(barrier)
      : "memory");
}

// The same to the same address in each block of the cluster that has a bit in `blocks`; the
// barrier at the same address there counts the bytes.
__device__ __forceinline__ void MulticastBox(uint32_t shared, const CUtensorMap* map, int column,
                                             int row, int product, uint32_t barrier,
                                             uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared),
      "l"(map), "r"(column), "r"(row), "r"(product), "r"(barrier), "h"(blocks)
      : "memory");
}

// Orders this thread's writes to shared memory before the unit's reads of it, which another
// thread may start behind a barrier.
__device__ __forceinline__ void FenceForStoreBox() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Copies a box from shared memory to (row, column) of matrix `product`.
__device__ __forceinline__ void StoreBox(const CUtensorMap* map, int column, int row, int product,
                                         uint32_t shared) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(map),
      "r"(column), "r"(row), "r"(product), "r"(shared)
      : "memory");
}

// Ends a group of this thread's stores.
__device__ __forceinline__ void StoreBoxCommit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until at most kPending groups of this thread still have to read shared memory.
template <int kPending>
__device__ __forceinline__ void StoreBoxWaitRead() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

}  // namespace gemm::ptx
