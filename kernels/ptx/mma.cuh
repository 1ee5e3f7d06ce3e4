// mma.sync: acc += A B over fragments that are spread over a warp.
//
// m16n8k16 over 16-bit elements (PTX ISA 7.0, sm_80 and up). With g = lane / 4 and
// t = 2 (lane % 4) a lane holds
//   a[0..3]: (g, t..t+1), (g+8, t..), (g, t+8..), (g+8, t+8..) of A, 16 x 16;
//   b[0..1]: (t..t+1, g), (t+8.., g) of B, 16 x 8;
//   acc:     (g, t..t+1), (g+8, t..t+1), 16 x 8.
#pragma once

#include <cstdint>

#include "gemm/dtype.h"
#include "kernels/ptx/architecture.h"

namespace gemm::ptx {

// f16, accumulators in f16, two in a register.
__device__ __forceinline__ void MmaM16N8K16(uint32_t (&acc)[2], const uint32_t (&a)[4], uint32_t b0,
                                            uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
      "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
      : "+r"(acc[0]), "+r"(acc[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// f16, accumulators in f32.
__device__ __forceinline__ void MmaM16N8K16(float (&acc)[4], const uint32_t (&a)[4], uint32_t b0,
                                            uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// bf16, accumulators in f32.
__device__ __forceinline__ void MmaBf16M16N8K16(float (&acc)[4], const uint32_t (&a)[4],
                                                uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

#define GEMM_MMA_FP8(types)                                                           \
  asm volatile("mma.sync.aligned.m16n8k32.row.col.f32." types                         \
               ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])               \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))

// m16n8k32 over fp8, accumulators in f32 (PTX ISA 8.4, sm_89 and up). Byte by byte, the fragments
// have the layout of those of f16. Traps on older architectures: rows that use it say so
// (DeviceCode::kSm89), and are refused before the launch.
template <DType kA, DType kB>
__device__ __forceinline__ void MmaFp8M16N8K32([[maybe_unused]] float (&acc)[4],
                                               [[maybe_unused]] const uint32_t (&a)[4],
                                               [[maybe_unused]] uint32_t b0,
                                               [[maybe_unused]] uint32_t b1) {
#if GEMM_HAS_FP8_MMA
  if constexpr (kA == DType::kE4M3 && kB == DType::kE4M3) {
    GEMM_MMA_FP8("e4m3.e4m3");
  } else if constexpr (kA == DType::kE4M3) {
    GEMM_MMA_FP8("e4m3.e5m2");
  } else if constexpr (kB == DType::kE4M3) {
    GEMM_MMA_FP8("e5m2.e4m3");
  } else {
    GEMM_MMA_FP8("e5m2.e5m2");
  }
#else
  __trap();
#endif
}

#undef GEMM_MMA_FP8

}  // namespace gemm::ptx
