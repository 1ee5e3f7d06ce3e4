// The multiply-add of the CUDA cores.
#pragma once

#include <cuda_fp16.h>

namespace gemm {

// acc + a * b, rounded once to the accumulator's type.
__device__ inline double MultiplyAdd(double a, double b, double acc) { return fma(a, b, acc); }
__device__ inline float MultiplyAdd(float a, float b, float acc) { return fmaf(a, b, acc); }
__device__ inline __half MultiplyAdd(__half a, __half b, __half acc) { return __hfma(a, b, acc); }

}  // namespace gemm
