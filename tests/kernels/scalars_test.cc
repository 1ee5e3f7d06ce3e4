// The scalars that are refused, and the rounding of the others.
#include "gemm/scalars.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace gemm {
namespace {

constexpr Types kF64{DType::kF64, DType::kF64, DType::kF64, Compute::kF64};
constexpr Types kF32{DType::kF32, DType::kF32, DType::kF32, Compute::kF32};
constexpr Types kF16Accumulators{DType::kF16, DType::kF16, DType::kF16, Compute::kF16};
constexpr double kLargestF32 = std::numeric_limits<float>::max();

TEST(CheckScalar, NamesFieldValueAndBound) {
  const absl::Status status = CheckScalar("beta", -1e39, Compute::kTF32);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "beta is -1e+39, but must be from -3.40282e+38 to 3.40282e+38: a product with compute "
            "tf32 takes its scalars in f32");
}

TEST(CheckScalar, TakesAllThatRoundsToAFiniteValue) {
  // Half a unit in the last place above the largest f32 is the first to round up.
  const double first_beyond = 0x1.ffffffp127;
  for (const Compute compute :
       {Compute::kF32, Compute::kTF32, Compute::kF32x3, Compute::kF16, Compute::kS32}) {
    EXPECT_TRUE(CheckScalar("alpha", kLargestF32, compute).ok());
    EXPECT_TRUE(CheckScalar("alpha", std::nextafter(first_beyond, 0), compute).ok());
    EXPECT_FALSE(CheckScalar("alpha", first_beyond, compute).ok());
    EXPECT_FALSE(CheckScalar("alpha", -first_beyond, compute).ok());
    EXPECT_TRUE(CheckScalar("alpha", 1e-300, compute).ok());
  }
  EXPECT_TRUE(CheckScalar("alpha", std::numeric_limits<double>::max(), Compute::kF64).ok());
  for (const double value : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_FALSE(CheckScalar("alpha", value, Compute::kF64).ok());
  }
}

TEST(CheckScalars, LooksAtEachOfThem) {
  EXPECT_TRUE(CheckScalars({.types = kF32}).ok());
  EXPECT_FALSE(CheckScalars({.types = kF32, .alpha = 1e39}).ok());
  EXPECT_FALSE(CheckScalars({.types = kF32, .beta = 1e39}).ok());
  EXPECT_FALSE(CheckScalars({.types = kF32, .leaky_slope = 1e39}).ok());
  EXPECT_TRUE(CheckScalars({.types = kF64, .alpha = 1e39, .beta = 1e39}).ok());
}

TEST(CheckIntegerEpilogue, AnS32ResultTakesSumsOfIntegersAlone) {
  constexpr Types kIntegers{DType::kS8, DType::kS8, DType::kS32, Compute::kS32};
  constexpr Types kScaled{DType::kS8, DType::kS8, DType::kF16, Compute::kS32};
  const auto message = [](const Problem& problem) {
    const absl::Status status = CheckScalars(problem);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  for (const double factor : {0.0, -0.0, 1e-60, 1.0, 1 + 1e-12}) {
    EXPECT_TRUE(CheckScalars({.types = kIntegers, .alpha = factor, .beta = factor}).ok()) << factor;
  }
  const Problem relu{.types = kIntegers, .beta = 1, .activation = Activation::kRelu};
  EXPECT_TRUE(CheckScalars(relu).ok());
  // A leaky relu without a slope is a relu.
  EXPECT_TRUE(
      CheckScalars({.types = kIntegers, .activation = Activation::kLeakyRelu, .leaky_slope = 0})
          .ok());
  EXPECT_EQ(message({.types = kIntegers, .alpha = 0.5}),
            "alpha is 0.5, but must be 0 or 1: an s32 result is a sum of integers; take f32, f16 "
            "or bf16");
  EXPECT_EQ(message({.types = kIntegers, .beta = -1}),
            "beta is -1, but must be 0 or 1: an s32 result is a sum of integers; take f32, f16 or "
            "bf16");
  EXPECT_EQ(message({.types = kIntegers, .activation = Activation::kGelu}),
            "activation is gelu, but must be none or relu: an s32 result is a sum of integers; "
            "take f32, f16 or bf16");
  EXPECT_EQ(message({.types = kIntegers, .activation = Activation::kLeakyRelu}),
            "activation is leaky_relu, but must be none or relu: an s32 result is a sum of "
            "integers; take f32, f16 or bf16");
  EXPECT_TRUE(
      CheckScalars({.types = kScaled, .alpha = 0.5, .beta = -1, .activation = Activation::kGelu})
          .ok());
}

TEST(RoundScalars, ToTheTypeOfTheEpilogue) {
  for (const Types& types : {kF32, kF16Accumulators}) {
    const Problem rounded =
        RoundScalars({.types = types, .alpha = 0.1, .beta = 1e-60, .leaky_slope = 0.3});
    EXPECT_EQ(rounded.alpha, 0.1f);
    EXPECT_EQ(rounded.beta, 0);
    EXPECT_EQ(rounded.leaky_slope, 0.3f);
  }
  const Problem same = RoundScalars({.types = kF64, .alpha = 0.1, .beta = 1e-60});
  EXPECT_EQ(same.alpha, 0.1);
  EXPECT_EQ(same.beta, 1e-60);
}

TEST(RoundScalars, AZeroIsNeverNegative) {
  for (const double beta : {-0.0, -1e-60}) {
    const Problem rounded = RoundScalars({.types = kF32, .beta = beta});
    EXPECT_EQ(rounded.beta, 0);
    EXPECT_FALSE(std::signbit(rounded.beta)) << beta;
  }
}

TEST(RoundScalars, KeepsSubnormals) {
  EXPECT_EQ(RoundScalars({.types = kF32, .alpha = 0x1p-149}).alpha, 0x1p-149);
  EXPECT_EQ(RoundScalars({.types = kF32, .alpha = 0x1p-150}).alpha, 0);
}

TEST(RoundScalars, ALeakyReluWithoutSlopeIsARelu) {
  for (const double slope : {0.0, -0.0, 1e-60}) {
    const Problem problem{
        .types = kF32, .activation = Activation::kLeakyRelu, .leaky_slope = slope};
    EXPECT_EQ(RoundScalars(problem).activation, Activation::kRelu);
  }
  const Problem in_f64{.types = kF64, .activation = Activation::kLeakyRelu, .leaky_slope = 1e-60};
  EXPECT_EQ(RoundScalars(in_f64).activation, Activation::kLeakyRelu);
  const Problem gelu{.types = kF32, .activation = Activation::kGelu, .leaky_slope = 0};
  EXPECT_EQ(RoundScalars(gelu).activation, Activation::kGelu);
}

}  // namespace
}  // namespace gemm
