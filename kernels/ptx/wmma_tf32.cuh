// WMMA loads and stores of m16n16k8 TF32 fragments in shared memory (PTX ISA 7.0, sm_80 and up).
// Those of mma.h take generic addresses, and for TF32 the compiler does not find out that these are
// in shared memory.
#pragma once

#include <mma.h>

#include <cstdint>

namespace gemm::ptx {

using Tf32FragmentA =
    nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 8, nvcuda::wmma::precision::tf32,
                           nvcuda::wmma::row_major>;
using Tf32FragmentB =
    nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 8, nvcuda::wmma::precision::tf32,
                           nvcuda::wmma::row_major>;
using Tf32Accumulators = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 8, float>;

// `shared` is a multiple of 32 bytes, `ld` is in elements.
__device__ __forceinline__ void WmmaLoad(Tf32FragmentA& a, uint32_t shared, unsigned ld) {
  uint32_t x[4];
  asm volatile("wmma.load.a.sync.aligned.row.m16n16k8.shared.tf32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(shared), "r"(ld)
               : "memory");
#pragma unroll
  for (int i = 0; i < 4; ++i) a.x[i] = __uint_as_float(x[i]);
}

__device__ __forceinline__ void WmmaLoad(Tf32FragmentB& b, uint32_t shared, unsigned ld) {
  uint32_t x[4];
  asm volatile("wmma.load.b.sync.aligned.row.m16n16k8.shared.tf32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(shared), "r"(ld)
               : "memory");
#pragma unroll
  for (int i = 0; i < 4; ++i) b.x[i] = __uint_as_float(x[i]);
}

__device__ __forceinline__ void WmmaStore(const Tf32Accumulators& d, uint32_t shared, unsigned ld) {
  asm volatile(
      "wmma.store.d.sync.aligned.row.m16n16k8.shared.f32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8}, "
      "%9;" ::"r"(shared),
      "f"(d.x[0]), "f"(d.x[1]), "f"(d.x[2]), "f"(d.x[3]), "f"(d.x[4]), "f"(d.x[5]), "f"(d.x[6]),
      "f"(d.x[7]), "r"(ld)
      : "memory");
}

}  // namespace gemm::ptx
