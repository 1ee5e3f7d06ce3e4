// mma.sync m16n8k16: sums += A B over f16 fragments spread over a warp (PTX ISA
// 7.0, sm_80 and up). With g = lane / 4 and t = 2 (lane % 4) a lane holds
//   a[0..3]: (g, t..t+1), (g+8, t..), (g, t+8..), (g+8, t+8..) of A, 16 x 16;
//   b[0..1]: (t..t+1, g), (t+8.., g) of B, 16 x 8;
//   sums:    (g, t..t+1), (g+8, t..t+1), 16 x 8.
#pragma once

#include <cstdint>

namespace gemm::ptx {

// Sums in f16, two in a register.
__device__ __forceinline__ void MmaM16N8K16(uint32_t (&sums)[2], const uint32_t (&a)[4],
                                            uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
      "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
      : "+r"(sums[0]), "+r"(sums[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Sums in f32.
__device__ __forceinline__ void MmaM16N8K16(float (&sums)[4], const uint32_t (&a)[4], uint32_t b0,
                                            uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace gemm::ptx
