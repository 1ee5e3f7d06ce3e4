// A 32-bit integer whose sums and products wrap in two's complement, for the host and the GPU
// alike: the accumulators of products of s8, and s32 elements in an epilogue.
#pragma once

#include <cstdint>

#include "kernels/numeric/host_device.h"

namespace gemm {

class WrappingS32 {
 public:
  WrappingS32() = default;
  GEMM_HOST_DEVICE constexpr explicit WrappingS32(int32_t x) : bits_(static_cast<uint32_t>(x)) {}
  // Integers that s32 holds.
  GEMM_HOST_DEVICE constexpr explicit WrappingS32(float x) : WrappingS32(static_cast<int32_t>(x)) {}
  // Any integer below 2^63 in magnitude, modulo 2^32.
  GEMM_HOST_DEVICE constexpr explicit WrappingS32(double x)
      : bits_(static_cast<uint32_t>(static_cast<uint64_t>(static_cast<int64_t>(x)))) {}

  GEMM_HOST_DEVICE constexpr int32_t value() const { return static_cast<int32_t>(bits_); }
  // Rounds to nearest even.
  GEMM_HOST_DEVICE constexpr explicit operator float() const { return static_cast<float>(value()); }
  GEMM_HOST_DEVICE constexpr explicit operator double() const { return value(); }

  GEMM_HOST_DEVICE constexpr WrappingS32& operator+=(WrappingS32 x) {
    bits_ += x.bits_;
    return *this;
  }
  GEMM_HOST_DEVICE friend constexpr WrappingS32 operator*(WrappingS32 x, WrappingS32 y) {
    WrappingS32 product;
    product.bits_ = x.bits_ * y.bits_;
    return product;
  }
  GEMM_HOST_DEVICE friend constexpr bool operator<(WrappingS32 x, WrappingS32 y) {
    return x.value() < y.value();
  }
  GEMM_HOST_DEVICE friend constexpr bool operator!=(WrappingS32 x, WrappingS32 y) {
    return x.bits_ != y.bits_;
  }
  GEMM_HOST_DEVICE friend constexpr bool operator==(WrappingS32 x, WrappingS32 y) {
    return x.bits_ == y.bits_;
  }

 private:
  uint32_t bits_ = 0;
};

}  // namespace gemm
