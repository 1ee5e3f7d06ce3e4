// mbarrier: barriers in shared memory that count arrivals of threads and bytes of asynchronous
// copies (PTX ISA 8.0, sm_90).
//
// A barrier goes through phases. A phase ends when as many threads have arrived as the barrier was
// made for, and all bytes that they announced have arrived, too. A waiting thread names the phase
// by its parity: 0 for the first, 1 for the second, and so on.
#pragma once

#include <cstdint>

namespace gemm::ptx {

constexpr int kBarrierBytes = 8;

// Called by one thread, before any thread uses the barrier at this shared address. FenceBarrierInit
// and a barrier of all threads must follow.
__device__ __forceinline__ void InitBarrier(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void FenceBarrierInit() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives, and announces `bytes` of copies.
__device__ __forceinline__ void ArriveExpecting(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void Arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives at the barrier that another block of the cluster has at the same address. It orders
// nothing beyond this block. `.release.cluster` would, at the cost of a memory barrier of the whole
// GPU. That is not needed: the arriving thread has only read shared memory, by products that are
// done.
__device__ __forceinline__ void ArriveAt(uint32_t barrier, uint32_t block) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier),
      "r"(block)
      : "memory");
}

// Waits until the phase of this parity has ended.
__device__ __forceinline__ void WaitForPhase(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra.uni ended;\n"
      "bra.uni again;\n"
      "ended:\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

}  // namespace gemm::ptx
