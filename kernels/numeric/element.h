// Host element types as C++ types, so that one template serves every DType.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "gemm/dtype.h"
#include "kernels/numeric/small_float.h"

namespace gemm {

// An element type in memory; how it is read as a float or double (`Wide`, which holds
// every value of the type); and how it is rounded back from one.
template <DType kType>
struct ElementTraits;

template <>
struct ElementTraits<DType::kF64> {
  using Storage = double;
  using Wide = double;
  static Wide Load(Storage x) { return x; }
  static Storage Store(double x) { return x; }
};

template <>
struct ElementTraits<DType::kF32> {
  using Storage = float;
  using Wide = float;
  static Wide Load(Storage x) { return x; }
  static Storage Store(double x) { return static_cast<float>(x); }
};

template <>
struct ElementTraits<DType::kF16> {
  using Storage = uint16_t;
  using Wide = float;
  static Wide Load(Storage x) { return F16ToFloat(x); }
  static Storage Store(double x) { return FloatToF16(static_cast<float>(x)); }
};

template <>
struct ElementTraits<DType::kBF16> {
  using Storage = uint16_t;
  using Wide = float;
  static Wide Load(Storage x) { return BF16ToFloat(x); }
  static Storage Store(double x) { return FloatToBF16(static_cast<float>(x)); }
};

template <>
struct ElementTraits<DType::kE4M3> {
  using Storage = uint8_t;
  using Wide = float;
  static Wide Load(Storage x) { return E4M3ToFloat(x); }
  static Storage Store(double x) { return FloatToE4M3(static_cast<float>(x)); }
};

template <>
struct ElementTraits<DType::kE5M2> {
  using Storage = uint8_t;
  using Wide = float;
  static Wide Load(Storage x) { return E5M2ToFloat(x); }
  static Storage Store(double x) { return FloatToE5M2(static_cast<float>(x)); }
};

// Rounds to nearest even and saturates; NaN becomes 0.
template <class Integer>
struct IntegerTraits {
  using Storage = Integer;
  using Wide = double;
  static Wide Load(Storage x) { return x; }
  static Storage Store(double x) {
    if (std::isnan(x)) return 0;
    const double low = std::numeric_limits<Integer>::min();
    const double high = std::numeric_limits<Integer>::max();
    const double nearest = std::nearbyint(x);
    return static_cast<Integer>(nearest < low ? low : nearest > high ? high : nearest);
  }
};
template <>
struct ElementTraits<DType::kS8> : IntegerTraits<int8_t> {};
template <>
struct ElementTraits<DType::kS32> : IntegerTraits<int32_t> {};

// Calls visitor.template operator()<kType>() for the run-time `type`.
template <class Visitor>
decltype(auto) VisitDType(DType type, Visitor&& visitor) {
  switch (type) {
    case DType::kF64:
      return visitor.template operator()<DType::kF64>();
    case DType::kF32:
      return visitor.template operator()<DType::kF32>();
    case DType::kF16:
      return visitor.template operator()<DType::kF16>();
    case DType::kBF16:
      return visitor.template operator()<DType::kBF16>();
    case DType::kE4M3:
      return visitor.template operator()<DType::kE4M3>();
    case DType::kE5M2:
      return visitor.template operator()<DType::kE5M2>();
    case DType::kS8:
      return visitor.template operator()<DType::kS8>();
    case DType::kS32:
      break;
  }
  return visitor.template operator()<DType::kS32>();
}

}  // namespace gemm
