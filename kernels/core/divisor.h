// Division by a number that a launch fixes: the GPU has no instruction for integer division.
#pragma once

#include <cstdint>

#include "kernels/numeric/host_device.h"

namespace gemm {

// For dividends from 0 to 2^31 - 1, by Granlund and Montgomery, "Division by invariant integers
// using multiplication", 1994. x / d is the upper half of x * ceil(2^(31 + l) / d), shifted by l -
// 1, where l is the number of bits of d - 1.
class Divisor {
 public:
  Divisor() = default;

  // `divisor` is 1 to 2^31 - 1.
  explicit constexpr Divisor(int divisor) : divisor_(divisor) {
    if (divisor == 1) return;
    int bits = 0;
    while (int64_t{1} << bits < divisor) ++bits;
    const uint64_t power = uint64_t{1} << (31 + bits);
    multiplier_ = static_cast<uint32_t>((power + static_cast<uint64_t>(divisor) - 1) /
                                        static_cast<uint64_t>(divisor));
    shift_ = bits - 1;
  }

  GEMM_HOST_DEVICE constexpr int Quotient(int dividend) const {
    if (divisor_ == 1) return dividend;
    const uint64_t product = uint64_t{static_cast<uint32_t>(dividend)} * multiplier_;
    return static_cast<int>(static_cast<uint32_t>(product >> 32) >> shift_);
  }

  GEMM_HOST_DEVICE constexpr int value() const { return divisor_; }

 private:
  int divisor_ = 1;
  uint32_t multiplier_ = 0;
  int shift_ = 0;
};

}  // namespace gemm
