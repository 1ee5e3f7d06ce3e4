// ldmatrix: 8 x 8 matrices of 16-bit elements from shared memory into the
// fragments of mma.sync (PTX ISA 6.5, sm_75 and up). Lanes 8x to 8x + 7 give the
// addresses of the rows of matrix x, 16 bytes each on 16-byte boundaries.
#pragma once

#include <cstdint>

namespace gemm::ptx {

// Four matrices: lane l gets of each the elements 2 (l % 4) and the one after it
// of row l / 4.
__device__ __forceinline__ void LdMatrixX4(uint32_t (&fragment)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(shared)
               : "memory");
}

// The same of the transposed matrices.
__device__ __forceinline__ void LdMatrixX4Trans(uint32_t (&fragment)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(shared)
               : "memory");
}

// Two transposed matrices. The addresses of lanes 16 to 31 are ignored.
__device__ __forceinline__ void LdMatrixX2Trans(uint32_t (&fragment)[2], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(fragment[0]), "=r"(fragment[1])
               : "r"(shared)
               : "memory");
}

}  // namespace gemm::ptx
