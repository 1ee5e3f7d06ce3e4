// f32 numbers as sums of two TF32 numbers.
//
// x = high + low. high is the first 11 significant bits of x, and low the first 11 of the rest:
//   a b = a_high b_high + a_high b_low + a_low b_high, and a_low b_low, which is left out.
// So three products on tensor cores have nearly the 24 bits of f32 (Ootomo and Yokota, "Recovering
// single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak
// performance", IJHPCA 36, 2022).
//
// Both are rounded to nearest. So low numbers have either sign, and the products left out, at most
// 2^-22 of a product each, do not add up over products of one sign. The low number's own rounding
// error is at most 2^-23 of an element.
//
// The low number of an infinite element is the element itself. It is in one product alone, whose
// result IEEE 754 defines. Its high number, which is in two products, is a power of two with the
// element's sign. The low number of NaN is NaN. If the nearest high number would be infinite, the
// one below it is taken.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/numeric/host_device.h"

namespace gemm {

// Bits of f32 numbers. Tensor cores ignore the last 13.
struct HighLow {
  uint32_t high;
  uint32_t low;
};

inline constexpr uint32_t kTf32Bits = 0xffffe000;  // of f32
inline constexpr uint32_t kHalfOfTf32 = 0x1000;    // of the last bit

// The bits that tensor cores read.
GEMM_HOST_DEVICE constexpr uint32_t CutToTf32(uint32_t bits) { return bits & kTf32Bits; }

GEMM_HOST_DEVICE constexpr HighLow CutToTf32(const HighLow& split) {
  return {CutToTf32(split.high), CutToTf32(split.low)};
}

GEMM_HOST_DEVICE inline HighLow Split(uint32_t bits) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const float x = std::bit_cast<float>(bits);
  // Takes the nearest number if it is still finite. Ties are rounded away from 0.
  const bool rounds = std::abs(x) < 0x1.ffep127F;
  const uint32_t high = CutToTf32(rounds ? bits + kHalfOfTf32 : bits);
  const float rest = x - std::bit_cast<float>(high);
  const bool finite = std::abs(x) <= kMost;
  // Without the exponent's first bit, infinity becomes 1. x + x keeps infinity, and turns any NaN
  // into one that is still NaN when it is cut.
  return {finite ? high : bits & 0xbfffe000,
          finite ? std::bit_cast<uint32_t>(rest) + kHalfOfTf32 : std::bit_cast<uint32_t>(x + x)};
}

}  // namespace gemm
