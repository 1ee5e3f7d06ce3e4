// f32 numbers as sums of two TF32 numbers.
//
// x = high + low, with high the first 11 significant bits of x and low the first 11 of the rest:
//   a b = a_high b_high + a_high b_low + a_low b_high, and a_low b_low, which is left out.
// So three products on tensor cores have nearly the 24 bits of f32 (Ootomo and Yokota, "Recovering
// single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak
// performance", IJHPCA 36, 2022).
//
// Both are rounded to nearest. So low numbers have either sign, and what is left out, at most 2^-22
// of a product, does not add up over products of one sign. What the low number loses is at most
// 2^-23 of an element.
//
// The low number of an infinite element is the element itself: it is in one product alone, of
// which IEEE 754 says what it is. The high one, in two products, is a power of two of its sign.
// NaN has NaN as low number. Where the nearest high number is infinite, it is the one below.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/numeric/host_device.h"

namespace gemm {

// Bits of f32 numbers, of which tensor cores ignore the last 13.
struct HighLow {
  uint32_t high;
  uint32_t low;
};

inline constexpr uint32_t kTf32Bits = 0xffffe000;  // of f32
inline constexpr uint32_t kHalfOfTf32 = 0x1000;    // of the last bit

// What tensor cores read.
GEMM_HOST_DEVICE constexpr uint32_t CutToTf32(uint32_t bits) { return bits & kTf32Bits; }

GEMM_HOST_DEVICE constexpr HighLow CutToTf32(const HighLow& split) {
  return {CutToTf32(split.high), CutToTf32(split.low)};
}

GEMM_HOST_DEVICE inline HighLow Split(uint32_t bits) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const float x = std::bit_cast<float>(bits);
  // Where the nearest is still finite, it is taken; ties are rounded away from 0.
  const bool rounds = std::abs(x) < 0x1.ffep127F;
  const uint32_t high = CutToTf32(rounds ? bits + kHalfOfTf32 : bits);
  const float rest = x - std::bit_cast<float>(high);
  const bool finite = std::abs(x) <= kMost;
  // Without the exponent's first bit infinity is 1. The sum keeps infinity, and makes NaN one that
  // is still NaN when it is cut.
  return {finite ? high : bits & 0xbfffe000,
          finite ? std::bit_cast<uint32_t>(rest) + kHalfOfTf32 : std::bit_cast<uint32_t>(x + x)};
}

}  // namespace gemm
