// Device element types as C++ types, so that one template serves every DType.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "gemm/dtype.h"
#include "kernels/numeric/wrapping.h"

namespace gemm {

// An element type in device memory; how it is widened to `Scalar`, in which epilogues
// compute; and how it is rounded back, to nearest even.
template <DType kType>
struct DeviceElement;

template <>
struct DeviceElement<DType::kF64> {
  using Type = double;
  using Scalar = double;
  __device__ static Scalar Load(Type x) { return x; }
  __device__ static Type Store(Scalar x) { return x; }
};

template <>
struct DeviceElement<DType::kF32> {
  using Type = float;
  using Scalar = float;
  __device__ static Scalar Load(Type x) { return x; }
  __device__ static Type Store(Scalar x) { return x; }
};

template <>
struct DeviceElement<DType::kF16> {
  using Type = __half;
  using Scalar = float;
  __device__ static Scalar Load(Type x) { return __half2float(x); }
  __device__ static Type Store(Scalar x) { return __float2half_rn(x); }
};

template <>
struct DeviceElement<DType::kBF16> {
  using Type = __nv_bfloat16;
  using Scalar = float;
  __device__ static Scalar Load(Type x) { return __bfloat162float(x); }
  __device__ static Type Store(Scalar x) { return __float2bfloat16_rn(x); }
};

template <>
struct DeviceElement<DType::kS32> {
  using Type = int32_t;
  using Scalar = WrappingS32;
  __device__ static Scalar Load(Type x) { return Scalar(x); }
  __device__ static Type Store(Scalar x) { return x.value(); }
};

}  // namespace gemm
