// Conversions of the small float types, over every bit pattern.
#include "kernels/numeric/small_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "gemm/reference.h"

namespace gemm {
namespace {

struct FormatCase {
  const char* name;
  FloatFormat format;
  float (*expand)(uint32_t);
  uint32_t (*round)(float);
  float largest;
};

template <FloatFormat kFormat>
FormatCase MakeCase(const char* name, float largest) {
  return {name, kFormat, [](uint32_t bits) { return ExpandFromFormat<kFormat>(bits); },
          [](float value) { return RoundToFormat<kFormat>(value); }, largest};
}

class SmallFloat : public ::testing::TestWithParam<FormatCase> {
 protected:
  uint32_t patterns() const { return 2 * GetParam().format.sign_bit(); }
};

// The value that the bits stand for, from the definition of the format.
double Definition(const FloatFormat& format, uint32_t bits) {
  const uint32_t exponent = (bits & (format.sign_bit() - 1)) >> format.mantissa_bits;
  const uint32_t mantissa = bits & ((1u << format.mantissa_bits) - 1);
  const double sign = bits & format.sign_bit() ? -1 : 1;
  const uint32_t all_ones = (1u << format.exponent_bits) - 1;
  if (exponent == all_ones && format.has_infinity) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  }
  if (exponent == all_ones && mantissa == (1u << format.mantissa_bits) - 1) return std::nan("");
  const double hidden = exponent == 0 ? 0 : 1;
  return sign * std::ldexp(hidden + std::ldexp(mantissa, -format.mantissa_bits),
                           std::max<int>(exponent, 1) - format.bias());
}

TEST_P(SmallFloat, EveryPatternExpandsToItsValue) {
  const FormatCase& c = GetParam();
  for (uint32_t bits = 0; bits < patterns(); ++bits) {
    const double expected = Definition(c.format, bits);
    const double actual = c.expand(bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(actual)) << bits;
    } else {
      EXPECT_EQ(actual, expected) << bits;
      EXPECT_EQ(std::signbit(actual), std::signbit(expected)) << bits;
    }
  }
}

TEST_P(SmallFloat, EveryPatternSurvivesTheRoundTrip) {
  const FormatCase& c = GetParam();
  for (uint32_t bits = 0; bits < patterns(); ++bits) {
    const float value = c.expand(bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(c.expand(c.round(value)))) << bits;
    } else {
      EXPECT_EQ(c.round(value), bits);
    }
  }
}

// Between each two neighbours: just below the middle, the middle, just above.
TEST_P(SmallFloat, RoundsToNearestEven) {
  const FormatCase& c = GetParam();
  const uint32_t sign = c.format.sign_bit();
  for (uint32_t bits = 0; c.expand(bits) < c.largest; ++bits) {
    const float low = c.expand(bits), high = c.expand(bits + 1);
    const float middle = low + (high - low) / 2;  // exact: one bit more than the format has
    const float inf = std::numeric_limits<float>::infinity();
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(c.round(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(c.round(middle), even);
    ASSERT_EQ(c.round(std::nextafter(middle, inf)), bits + 1);
    ASSERT_EQ(c.round(-middle), even | sign);
    ASSERT_EQ(c.round(-std::nextafter(middle, inf)), (bits + 1) | sign);
  }
}

TEST_P(SmallFloat, OverflowIsInfinityOrNaN) {
  const FormatCase& c = GetParam();
  const uint32_t top = c.round(c.largest);
  const float step = c.largest - c.expand(top - 1);
  const float inf = std::numeric_limits<float>::infinity();
  const bool rounds_up = c.format.has_infinity;  // otherwise the largest is even: ties stay
  EXPECT_EQ(c.round(std::nextafter(c.largest + step / 2, 0.0f)), top);
  EXPECT_EQ(c.round(c.largest + step / 2), rounds_up ? c.format.overflow_bits() : top);
  for (const float beyond :
       {std::nextafter(c.largest + step / 2, inf), std::numeric_limits<float>::max(), inf}) {
    if (beyond <= c.largest) continue;  // bf16's largest is f32's but for rounding
    const float rounded = c.expand(c.round(beyond));
    EXPECT_TRUE(c.format.has_infinity ? std::isinf(rounded) : std::isnan(rounded)) << beyond;
    const float negative = c.expand(c.round(-beyond));
    EXPECT_TRUE(std::signbit(negative)) << beyond;
  }
  EXPECT_TRUE(std::isnan(c.expand(c.round(std::nanf("")))));
}

INSTANTIATE_TEST_SUITE_P(Formats, SmallFloat,
                         ::testing::Values(MakeCase<kF16Format>("f16", 65504.0f),
                                           MakeCase<kBF16Format>("bf16", 0x1.fep127f),
                                           MakeCase<kE4M3Format>("e4m3", 448.0f),
                                           MakeCase<kE5M2Format>("e5m2", 57344.0f)),
                         [](const auto& info) { return info.param.name; });

TEST(Element, LoadsWhatItStored) {
  for (int t = 0; t < kDTypeCount; ++t) {
    const DType type = static_cast<DType>(t);
    std::vector<std::byte> data(4 * SizeOf(type));
    for (const double value : {0.0, 1.0, -2.0, 96.0}) {
      StoreElement(data.data(), 2, type, value);
      EXPECT_EQ(LoadElement(data.data(), 2, type), value) << Name(type);
    }
  }
}

TEST(Element, IntegersRoundToEvenAndSaturate) {
  int8_t s8[1];
  int32_t s32[1];
  for (const auto& [value, expected] :
       {std::pair{2.5, 2}, {3.5, 4}, {-2.5, -2}, {300.0, 127}, {-1e9, -128}}) {
    StoreElement(s8, 0, DType::kS8, value);
    EXPECT_EQ(s8[0], expected) << value;
  }
  StoreElement(s32, 0, DType::kS32, 1e300);
  EXPECT_EQ(s32[0], std::numeric_limits<int32_t>::max());
  StoreElement(s32, 0, DType::kS32, std::nan(""));
  EXPECT_EQ(s32[0], 0);
}

TEST(DTypeNames, ParseBackAndAreUnique) {
  for (int t = 0; t < kDTypeCount; ++t) {
    EXPECT_EQ(ParseDType(Name(static_cast<DType>(t))), static_cast<DType>(t));
  }
  for (int c = 0; c < kComputeCount; ++c) {
    EXPECT_EQ(ParseCompute(Name(static_cast<Compute>(c))), static_cast<Compute>(c));
  }
  EXPECT_EQ(ParseDType("F32"), std::nullopt);
  EXPECT_EQ(ParseDType(""), std::nullopt);
  EXPECT_EQ(ParseCompute("bf16"), std::nullopt);
  EXPECT_EQ(Name(DType::kBF16), "bf16");
  EXPECT_EQ(Name(Compute::kTF32), "tf32");
  EXPECT_EQ(Name(Compute::kF32x3), "f32x3");
  EXPECT_EQ(Name(Compute::kS32), "s32");
}

}  // namespace
}  // namespace gemm
