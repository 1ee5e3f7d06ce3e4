// Conversions between f32 and the element types of at most 16 bits, bit for bit
// the same on the host and on the GPU.
//
// Rounding is to nearest, ties to even. Beyond the largest finite value f16,
// bf16 and e5m2 become infinite and e4m3, which has no infinity, becomes NaN
// (as ml_dtypes does). Subnormals are kept. NaN stays NaN, with its sign.
#pragma once

#include <cstdint>

#include "kernels/numeric/host_device.h"

namespace gemm {

// A float format of 1 sign bit, `exponent_bits` and `mantissa_bits`.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;  // false: all-ones is NaN, everything else is finite

  GEMM_HOST_DEVICE constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  GEMM_HOST_DEVICE constexpr uint32_t sign_bit() const {
    return 1u << (exponent_bits + mantissa_bits);
  }
  // The bits of infinity, or of NaN in a format without infinity.
  GEMM_HOST_DEVICE constexpr uint32_t overflow_bits() const {
    return has_infinity ? ((1u << exponent_bits) - 1) << mantissa_bits : sign_bit() - 1;
  }
  GEMM_HOST_DEVICE constexpr uint32_t nan_bits() const {
    return has_infinity ? overflow_bits() | 1u << (mantissa_bits - 1) : overflow_bits();
  }
};

inline constexpr FloatFormat kF16Format{5, 10, true};
inline constexpr FloatFormat kBF16Format{8, 7, true};
inline constexpr FloatFormat kE4M3Format{4, 3, false};
inline constexpr FloatFormat kE5M2Format{5, 2, true};

GEMM_HOST_DEVICE constexpr uint32_t FloatBits(float value) {
  return __builtin_bit_cast(uint32_t, value);
}
GEMM_HOST_DEVICE constexpr float BitsFloat(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

// The bits of `value` rounded to the format.
template <FloatFormat kFormat>
GEMM_HOST_DEVICE constexpr uint32_t RoundToFormat(float value) {
  constexpr int kShift = 23 - kFormat.mantissa_bits;
  constexpr int kRebias = 127 - kFormat.bias();
  const uint32_t bits = FloatBits(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t sign = bits >> 31 ? kFormat.sign_bit() : 0;
  if (magnitude > 0x7f800000u) return sign | kFormat.nan_bits();
  if (magnitude == 0x7f800000u) return sign | kFormat.overflow_bits();
  if ((magnitude >> 23) <= kRebias) {
    // Subnormal in the format: adding a power of two whose last place is the
    // format's smallest subnormal lets the f32 adder round. With as many
    // exponent bits as f32 the shift below is right for subnormals too.
    if constexpr (kRebias > 0) {
      constexpr uint32_t kMagicBits = static_cast<uint32_t>(kRebias + kShift + 1) << 23;
      return sign | (FloatBits(BitsFloat(magnitude) + BitsFloat(kMagicBits)) - kMagicBits);
    }
  }
  const uint32_t ties_to_even = ((1u << (kShift - 1)) - 1) + (magnitude >> kShift & 1);
  const uint32_t rounded = ((magnitude + ties_to_even) >> kShift) -
                           (static_cast<uint32_t>(kRebias) << kFormat.mantissa_bits);
  return sign | (rounded < kFormat.overflow_bits() ? rounded : kFormat.overflow_bits());
}

// The value of the format's bits; every one is an f32.
template <FloatFormat kFormat>
GEMM_HOST_DEVICE constexpr float ExpandFromFormat(uint32_t bits) {
  constexpr int kShift = 23 - kFormat.mantissa_bits;
  constexpr int kRebias = 127 - kFormat.bias();
  const uint32_t sign = bits & kFormat.sign_bit() ? 0x80000000u : 0;
  const uint32_t magnitude = bits & (kFormat.sign_bit() - 1);
  if (magnitude > kFormat.overflow_bits() ||
      (!kFormat.has_infinity && magnitude == kFormat.overflow_bits())) {
    return BitsFloat(sign | 0x7fc00000u);
  }
  if (kFormat.has_infinity && magnitude == kFormat.overflow_bits()) {
    return BitsFloat(sign | 0x7f800000u);
  }
  if constexpr (kRebias == 0) {
    return BitsFloat(sign | magnitude << kShift);
  } else {
    // 2^rebias scales subnormals and normals alike, exactly.
    constexpr float kScale = BitsFloat(static_cast<uint32_t>(127 + kRebias) << 23);
    return BitsFloat(sign | FloatBits(BitsFloat(magnitude << kShift) * kScale));
  }
}

GEMM_HOST_DEVICE constexpr uint16_t FloatToF16(float value) {
  return static_cast<uint16_t>(RoundToFormat<kF16Format>(value));
}
GEMM_HOST_DEVICE constexpr float F16ToFloat(uint16_t bits) {
  return ExpandFromFormat<kF16Format>(bits);
}
GEMM_HOST_DEVICE constexpr uint16_t FloatToBF16(float value) {
  return static_cast<uint16_t>(RoundToFormat<kBF16Format>(value));
}
GEMM_HOST_DEVICE constexpr float BF16ToFloat(uint16_t bits) {
  return ExpandFromFormat<kBF16Format>(bits);
}
GEMM_HOST_DEVICE constexpr uint8_t FloatToE4M3(float value) {
  return static_cast<uint8_t>(RoundToFormat<kE4M3Format>(value));
}
GEMM_HOST_DEVICE constexpr float E4M3ToFloat(uint8_t bits) {
  return ExpandFromFormat<kE4M3Format>(bits);
}
GEMM_HOST_DEVICE constexpr uint8_t FloatToE5M2(float value) {
  return static_cast<uint8_t>(RoundToFormat<kE5M2Format>(value));
}
GEMM_HOST_DEVICE constexpr float E5M2ToFloat(uint8_t bits) {
  return ExpandFromFormat<kE5M2Format>(bits);
}

}  // namespace gemm
