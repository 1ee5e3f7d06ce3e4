// mma.sync m16n8k32 over fp8, accumulators in f32 (PTX ISA 8.4, sm_89 and up). The
// fragments have, byte by byte, the layout of those of f16; see mma.cuh.
#pragma once

#include <cstdint>

#include "gemm/dtype.h"
#include "kernels/ptx/architecture.h"

namespace gemm::ptx {

#define GEMM_MMA_FP8(types)                                                           \
  asm volatile("mma.sync.aligned.m16n8k32.row.col.f32." types                         \
               ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])               \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))

// Ends the kernel with an error where the architecture has none. Rows that use it say so
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
