// mma.sync m16n8k16 over bf16, sums in f32 (PTX ISA 7.0, sm_80 and up). The
// fragments lie as those of f16; see mma.cuh.
#pragma once

#include <cstdint>

namespace gemm::ptx {

__device__ __forceinline__ void MmaBf16M16N8K16(float (&sums)[4], const uint32_t (&a)[4],
                                                uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace gemm::ptx
