// The generator's value at an index. It uses integer arithmetic and f64 add, multiply,
// divide and square root, which IEEE 754 rounds in one way only. Files that include this
// are compiled without contraction (-ffp-contract=off, --fmad=false): a fused
// multiply-add rounds once instead of twice, and the host and the GPU would differ.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gemm/generate.h"
#include "kernels/numeric/host_device.h"
#include "kernels/numeric/small_float.h"

namespace gemm {

// SplitMix64's output function.
GEMM_HOST_DEVICE constexpr uint64_t Mix64(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// u(t) of gemm/generate.h: a multiple of 2^-53 in [0, 1).
GEMM_HOST_DEVICE constexpr double UnitDraw(uint64_t seed, uint64_t t) {
  return static_cast<double>(Mix64(seed + (t + 1) * 0x9E3779B97F4A7C15u) >> 11) * 0x1p-53;
}

// c[0] + c[1] x + c[2] x^2 + ...
template <size_t kCount>
GEMM_HOST_DEVICE constexpr double Horner(const double (&c)[kCount], double x) {
  double sum = c[kCount - 1];
  for (size_t i = kCount - 1; i > 0; --i) sum = sum * x + c[i - 1];
  return sum;
}

// log(x) for normal x > 0. Let x = 2^e f, with f in [sqrt(1/2), sqrt 2), and s = (f - 1) / (f + 1).
// Then log f = 2 (s + s^3/3 + s^5/5 + ...). |s| < 0.1716, so ten terms beyond the first leave less
// than 2^-55 of the sum.
GEMM_HOST_DEVICE constexpr double PortableLog(double x) {
  constexpr double kLn2High = 0x1.62e42feep-1;  // 32 bits: its product with e is exact
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  constexpr double kSqrt2 = 0x1.6a09e667f3bcdp+0;
  constexpr double kSeries[] = {1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11,
                                1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
  const uint64_t bits = __builtin_bit_cast(uint64_t, x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double f = __builtin_bit_cast(double, (bits & 0xFFFFFFFFFFFFFu) | 0x3FF0000000000000u);
  if (f >= kSqrt2) {
    f = f * 0.5;
    ++exponent;
  }
  const double s = (f - 1.0) / (f + 1.0);
  const double s2 = s * s;
  const double log_f = 2.0 * s + 2.0 * s * s2 * Horner(kSeries, s2);
  const double e = exponent;
  return e * kLn2High + (e * kLn2Low + log_f);
}

// cos(2 pi u) for u in [0, 1), a multiple of 2^-53. 4u = q + r with integral q
// and |r| <= 1/2, exactly; Taylor series in the angle r pi/2, at most pi/4,
// where the first term left out is below 2^-57.
GEMM_HOST_DEVICE constexpr double PortableCosTurn(double u) {
  constexpr double kHalfPi = 0x1.921fb54442d18p+0;
  constexpr double kSine[] = {1.0,
                              -1.0 / 6,
                              1.0 / 120,
                              -1.0 / 5040,
                              1.0 / 362880,
                              -1.0 / 39916800,
                              1.0 / 6227020800,
                              -1.0 / 1307674368000,
                              1.0 / 355687428096000};
  constexpr double kCosine[] = {1.0,
                                -1.0 / 2,
                                1.0 / 24,
                                -1.0 / 720,
                                1.0 / 40320,
                                -1.0 / 3628800,
                                1.0 / 479001600,
                                -1.0 / 87178291200,
                                1.0 / 20922789888000};
  const double quarters = 4.0 * u;
  // u is at least 0.
  const int q = static_cast<int>(quarters + 0.5);  // NOLINT(bugprone-incorrect-roundings)
  const double angle = (quarters - q) * kHalfPi;
  const double x2 = angle * angle;
  const double magnitude = q % 2 == 0 ? Horner(kCosine, x2) : angle * Horner(kSine, x2);
  return q == 1 || q == 2 ? -magnitude : magnitude;
}

// The value at `index` in f64.
GEMM_HOST_DEVICE inline double GeneratedValue(const GeneratorSpec& spec, uint64_t index) {
  if (spec.distribution == Distribution::kUniform) {
    const double width = spec.high_or_stddev - spec.low_or_mean;
    return spec.low_or_mean + width * UnitDraw(spec.seed, index);
  }
  const double radius = sqrt(-2.0 * PortableLog(1.0 - UnitDraw(spec.seed, 2 * index)));
  const double cosine = PortableCosTurn(UnitDraw(spec.seed, 2 * index + 1));
  return spec.low_or_mean + spec.high_or_stddev * (radius * cosine);
}

// The element types that can be generated, each rounded from f32.
struct ToF64 {
  using Storage = double;
  GEMM_HOST_DEVICE static Storage Round(float x) { return x; }
};
struct ToF32 {
  using Storage = float;
  GEMM_HOST_DEVICE static Storage Round(float x) { return x; }
};
struct ToF16 {
  using Storage = uint16_t;
  GEMM_HOST_DEVICE static Storage Round(float x) { return FloatToF16(x); }
};
struct ToBF16 {
  using Storage = uint16_t;
  GEMM_HOST_DEVICE static Storage Round(float x) { return FloatToBF16(x); }
};
struct ToE4M3 {
  using Storage = uint8_t;
  GEMM_HOST_DEVICE static Storage Round(float x) { return FloatToE4M3(x); }
};
struct ToE5M2 {
  using Storage = uint8_t;
  GEMM_HOST_DEVICE static Storage Round(float x) { return FloatToE5M2(x); }
};
struct ToS8 {
  using Storage = int8_t;
  GEMM_HOST_DEVICE static Storage Round(float x) {
    const float nearest = rintf(x);
    return static_cast<Storage>(nearest < -128 ? -128 : nearest > 127 ? 127 : nearest);
  }
};

// The places of a target's lines in the logical matrix.
struct GeneratorLines {
  int64_t lines;
  int64_t length;
  uint64_t line_step;     // from an element's index to the next line's
  uint64_t element_step;  // and to the next along the line
};
inline GeneratorLines LinesOf(const GeneratorTarget& target) {
  const uint64_t cols = static_cast<uint64_t>(target.cols);
  if (target.column_major) return {target.cols, target.rows, 1, cols};
  return {target.rows, target.cols, cols, 1};
}

// Fills element `position` of line `line`.
template <class To>
GEMM_HOST_DEVICE inline void GenerateElement(const GeneratorSpec& spec, const GeneratorLines& lines,
                                             void* data, int64_t pitch_bytes, int64_t line,
                                             int64_t position) {
  const uint64_t index = static_cast<uint64_t>(line) * lines.line_step +
                         static_cast<uint64_t>(position) * lines.element_step;
  auto* elements =
      reinterpret_cast<typename To::Storage*>(static_cast<char*>(data) + line * pitch_bytes);
  elements[position] = To::Round(static_cast<float>(GeneratedValue(spec, index)));
}

// Calls visitor.template operator()<To>() for the element type; UNIMPLEMENTED
// for a type that cannot be generated.
template <class Visitor>
absl::Status VisitGenerated(DType type, Visitor&& visitor) {
  switch (type) {
    case DType::kF64:
      return visitor.template operator()<ToF64>();
    case DType::kF32:
      return visitor.template operator()<ToF32>();
    case DType::kF16:
      return visitor.template operator()<ToF16>();
    case DType::kBF16:
      return visitor.template operator()<ToBF16>();
    case DType::kE4M3:
      return visitor.template operator()<ToE4M3>();
    case DType::kE5M2:
      return visitor.template operator()<ToE5M2>();
    case DType::kS8:
      return visitor.template operator()<ToS8>();
    case DType::kS32:
      break;
  }
  return absl::UnimplementedError(absl::StrCat(
      "dtype ", Name(type), " cannot be generated; f64, f32, f16, bf16, e4m3, e5m2 and s8 can"));
}

}  // namespace gemm
