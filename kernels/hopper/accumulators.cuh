// A thread's accumulators. Neighbours in a row of D come in pairs (wgmma.cuh): two floats, two
// integers, or two f16 in one register.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "gemm/dtype.h"

namespace gemm {

template <DType kType>
using AccumulatorRegister =
    std::conditional_t<kType == DType::kF16, uint32_t,
                       std::conditional_t<kType == DType::kS32, int32_t, float>>;

// Registers of a pair.
template <class Register>
inline constexpr int kPairRegisters = std::is_same_v<Register, uint32_t> ? 1 : 2;

// Pair `x` of those from `accumulators` on, as floats: integers are rounded to nearest.
__device__ __forceinline__ float2 AccumulatorPair(const float* accumulators, int x) {
  return {accumulators[2 * x], accumulators[2 * x + 1]};
}
__device__ __forceinline__ float2 AccumulatorPair(const int32_t* accumulators, int x) {
  return {__int2float_rn(accumulators[2 * x]), __int2float_rn(accumulators[2 * x + 1])};
}
__device__ __forceinline__ float2 AccumulatorPair(const uint32_t* accumulators, int x) {
  __half2 pair;
  memcpy(&pair, accumulators + x, sizeof(pair));
  return __half22float2(pair);
}

}  // namespace gemm
