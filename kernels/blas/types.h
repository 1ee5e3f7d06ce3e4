// The type combinations of the cuBLAS and cuBLASLt rows.
#pragma once

#include "gemm/problem.h"

namespace gemm {

inline constexpr Types kBlasF64[] = {{DType::kF64, DType::kF64, DType::kF64, Compute::kF64}};
// f32x3 allows larger errors than f32 (error_bound.cc).
inline constexpr Types kBlasF32[] = {{DType::kF32, DType::kF32, DType::kF32, Compute::kF32},
                                     {DType::kF32, DType::kF32, DType::kF32, Compute::kF32x3}};
inline constexpr Types kBlasTF32[] = {{DType::kF32, DType::kF32, DType::kF32, Compute::kTF32}};
inline constexpr Types kBlasF16[] = {{DType::kF16, DType::kF16, DType::kF16, Compute::kF32},
                                     {DType::kF16, DType::kF16, DType::kF32, Compute::kF32}};
inline constexpr Types kBlasF16Acc16[] = {{DType::kF16, DType::kF16, DType::kF16, Compute::kF16}};
inline constexpr Types kBlasBF16[] = {{DType::kBF16, DType::kBF16, DType::kBF16, Compute::kF32},
                                      {DType::kBF16, DType::kBF16, DType::kF32, Compute::kF32}};
// Only cuBLASLt has fp8. It has no product of two e5m2 operands.
inline constexpr Types kBlasE4M3[] = {{DType::kE4M3, DType::kE4M3, DType::kF16, Compute::kF32},
                                      {DType::kE4M3, DType::kE4M3, DType::kBF16, Compute::kF32},
                                      {DType::kE4M3, DType::kE4M3, DType::kF32, Compute::kF32}};
inline constexpr Types kBlasE5M2[] = {{DType::kE5M2, DType::kE4M3, DType::kF16, Compute::kF32},
                                      {DType::kE5M2, DType::kE4M3, DType::kBF16, Compute::kF32},
                                      {DType::kE5M2, DType::kE4M3, DType::kF32, Compute::kF32},
                                      {DType::kE4M3, DType::kE5M2, DType::kF16, Compute::kF32},
                                      {DType::kE4M3, DType::kE5M2, DType::kBF16, Compute::kF32},
                                      {DType::kE4M3, DType::kE5M2, DType::kF32, Compute::kF32}};

// cuBLASLt has s32 results alone; the others are a pass over those.
inline constexpr Types kBlasS8[] = {{DType::kS8, DType::kS8, DType::kS32, Compute::kS32},
                                    {DType::kS8, DType::kS8, DType::kF32, Compute::kS32},
                                    {DType::kS8, DType::kS8, DType::kF16, Compute::kS32},
                                    {DType::kS8, DType::kS8, DType::kBF16, Compute::kS32}};

}  // namespace gemm
