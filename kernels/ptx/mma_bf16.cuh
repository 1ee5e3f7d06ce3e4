// mma.sync m16n8k16 over bf16, accumulators in f32 (PTX ISA 7.0, sm_80 and up).
// The fragments have the layout of those of f16; see mma.cuh.
#pragma once

#include <cstdint>

namespace gemm::ptx {

__device__ __forceinline__ void MmaBf16M16N8K16(float (&acc)[4], const uint32_t (&a)[4],
                                                uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace gemm::ptx
