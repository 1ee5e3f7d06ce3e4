// mma.sync m16n8k16: acc += A B over f16 fragments that are spread over a warp
// (PTX ISA 7.0, sm_80 and up). With g = lane / 4 and t = 2 (lane % 4) a lane holds
//   a[0..3]: (g, t..t+1), (g+8, t..), (g, t+8..), (g+8, t+8..) of A, 16 x 16;
//   b[0..1]: (t..t+1, g), (t+8.., g) of B, 16 x 8;
//   acc:     (g, t..t+1), (g+8, t..t+1), 16 x 8.
#pragma once

#include <cstdint>

namespace gemm::ptx {

// Accumulators in f16, two in a register.
__device__ __forceinline__ void MmaM16N8K16(uint32_t (&acc)[2], const uint32_t (&a)[4], uint32_t b0,
                                            uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
      "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
      : "+r"(acc[0]), "+r"(acc[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Accumulators in f32.
__device__ __forceinline__ void MmaM16N8K16(float (&acc)[4], const uint32_t (&a)[4], uint32_t b0,
                                            uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace gemm::ptx
