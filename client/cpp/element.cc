// Single elements of dense memory as doubles.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "gemmd/client/matrix.h"

namespace gemmd::client {
namespace {

// A binary floating-point format of at most 16 bits: a sign, an exponent and a
// significand, with subnormals.
struct SmallFloat {
  int exponent_bits;
  int fraction_bits;
  // IEEE: the top exponent means infinity and NaN. Otherwise (OCP E4M3) only
  // the all-ones pattern is NaN, and there is no infinity.
  bool ieee;

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr uint32_t magnitude_mask() const { return (1u << (exponent_bits + fraction_bits)) - 1; }
  constexpr uint32_t infinity() const {
    return ((1u << exponent_bits) - 1) << fraction_bits;  // of an IEEE format
  }
  constexpr uint32_t nan() const {
    return ieee ? infinity() | (1u << (fraction_bits - 1)) : magnitude_mask();
  }
};

constexpr SmallFloat kHalf{.exponent_bits = 5, .fraction_bits = 10, .ieee = true};
constexpr SmallFloat kBrain{.exponent_bits = 8, .fraction_bits = 7, .ieee = true};
constexpr SmallFloat kE4M3{.exponent_bits = 4, .fraction_bits = 3, .ieee = false};
constexpr SmallFloat kE5M2{.exponent_bits = 5, .fraction_bits = 2, .ieee = true};

double Decode(const SmallFloat& f, uint32_t bits) {
  const uint32_t magnitude = bits & f.magnitude_mask();
  const double sign = (bits >> (f.exponent_bits + f.fraction_bits)) & 1 ? -1.0 : 1.0;
  if (f.ieee && magnitude >= f.infinity()) {
    return magnitude == f.infinity() ? sign * std::numeric_limits<double>::infinity()
                                     : std::numeric_limits<double>::quiet_NaN();
  }
  if (!f.ieee && magnitude == f.nan()) return std::numeric_limits<double>::quiet_NaN();
  const int exponent = static_cast<int>(magnitude >> f.fraction_bits);
  const uint32_t fraction = magnitude & ((1u << f.fraction_bits) - 1);
  const uint32_t significand = exponent == 0 ? fraction : fraction | (1u << f.fraction_bits);
  const int scale = (exponent == 0 ? 1 : exponent) - f.bias() - f.fraction_bits;
  return sign * std::ldexp(static_cast<double>(significand), scale);
}

uint32_t Encode(const SmallFloat& f, float value) {
  const uint32_t sign = (std::signbit(value) ? 1u : 0u) << (f.exponent_bits + f.fraction_bits);
  if (std::isnan(value)) return sign | f.nan();
  const double magnitude = std::fabs(static_cast<double>(value));
  const uint32_t overflow = f.ieee ? f.infinity() : f.nan();
  if (std::isinf(magnitude)) return sign | overflow;
  if (magnitude == 0) return sign;
  // In units of the last place at this magnitude; nearbyint rounds to even.
  const int exponent = std::max(std::ilogb(magnitude), 1 - f.bias());
  const double units = std::nearbyint(std::ldexp(magnitude, f.fraction_bits - exponent));
  // A carry out of the significand runs into the exponent field, as it should;
  // a subnormal has no implicit one, so that its exponent field comes out 0.
  const uint64_t bits = (static_cast<uint64_t>(exponent + f.bias() - 1) << f.fraction_bits) +
                        static_cast<uint64_t>(units);
  return sign | static_cast<uint32_t>(bits < overflow ? bits : overflow);
}

template <typename T>
T Load(const std::byte* data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void Store(std::byte* data, int64_t index, T value) {
  std::memcpy(data + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

template <typename T>
T Saturate(double value) {
  if (std::isnan(value)) return 0;
  const double rounded = std::nearbyint(value);
  if (rounded <= static_cast<double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  if (rounded >= static_cast<double>(std::numeric_limits<T>::max())) {
    return std::numeric_limits<T>::max();
  }
  return static_cast<T>(rounded);
}

}  // namespace

double LoadElement(const std::byte* data, int64_t index, DataType type) {
  switch (type) {
    case kF64:
      return Load<double>(data, index);
    case kF32:
      return Load<float>(data, index);
    case kF16:
      return Decode(kHalf, Load<uint16_t>(data, index));
    case kBF16:
      return Decode(kBrain, Load<uint16_t>(data, index));
    case kF8E4M3:
      return Decode(kE4M3, Load<uint8_t>(data, index));
    case kF8E5M2:
      return Decode(kE5M2, Load<uint8_t>(data, index));
    case kS8:
      return Load<int8_t>(data, index);
    case kS32:
      return Load<int32_t>(data, index);
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

void StoreElement(std::byte* data, int64_t index, DataType type, double value) {
  const auto narrow = static_cast<float>(value);
  switch (type) {
    case kF64:
      return Store(data, index, value);
    case kF32:
      return Store(data, index, narrow);
    case kF16:
      return Store(data, index, static_cast<uint16_t>(Encode(kHalf, narrow)));
    case kBF16:
      return Store(data, index, static_cast<uint16_t>(Encode(kBrain, narrow)));
    case kF8E4M3:
      return Store(data, index, static_cast<uint8_t>(Encode(kE4M3, narrow)));
    case kF8E5M2:
      return Store(data, index, static_cast<uint8_t>(Encode(kE5M2, narrow)));
    case kS8:
      return Store(data, index, Saturate<int8_t>(value));
    case kS32:
      return Store(data, index, Saturate<int32_t>(value));
    default:
      return;
  }
}

}  // namespace gemmd::client
