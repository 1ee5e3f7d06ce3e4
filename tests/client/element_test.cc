// Elements as doubles, and matrices made of them.

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "gemmd/client/matrix.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gemmd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

double RoundTrip(DataType type, double value) {
  std::byte memory[8] = {};
  StoreElement(memory, 0, type, value);
  return LoadElement(memory, 0, type);
}

// Every pattern of a small format decodes to a value that encodes to it again.
void ExpectPatternsSurvive(DataType type) {
  const int count = SizeOf(type) == 1 ? 1 << 8 : 1 << 16;
  for (int pattern = 0; pattern < count; ++pattern) {
    std::byte memory[2] = {std::byte(pattern & 0xff), std::byte(pattern >> 8)};
    const double value = LoadElement(memory, 0, type);
    if (std::isnan(value)) continue;
    std::byte stored[2] = {};
    StoreElement(stored, 0, type, value);
    const int again = static_cast<int>(stored[0]) | static_cast<int>(stored[1]) << 8;
    ASSERT_EQ(again, pattern) << Name(type) << " " << value;
  }
}

TEST(Element, EveryPatternOfTheSmallTypesSurvives) {
  for (const DataType type : {kF16, kBF16, kF8E4M3, kF8E5M2, kS8}) ExpectPatternsSurvive(type);
}

TEST(Element, RoundsToNearestEven) {
  EXPECT_EQ(RoundTrip(kF16, 1 + 0x1p-11), 1);           // tie, down to even
  EXPECT_EQ(RoundTrip(kF16, 1 + 0x3p-11), 1 + 0x1p-9);  // tie, up to even
  EXPECT_EQ(RoundTrip(kBF16, 1 + 0x1p-8), 1);
  EXPECT_EQ(RoundTrip(kBF16, 1 + 0x3p-8), 1 + 0x1p-6);
  EXPECT_EQ(RoundTrip(kF8E4M3, 1.0625), 1);
  EXPECT_EQ(RoundTrip(kF8E4M3, 1.1875), 1.25);
  EXPECT_EQ(RoundTrip(kF8E5M2, 1.125), 1);
  EXPECT_EQ(RoundTrip(kF16, 0x1p-25), 0);  // half the least subnormal
  EXPECT_EQ(RoundTrip(kF16, 0x1.8p-25), 0x1p-24);
  EXPECT_EQ(RoundTrip(kF16, 2047.99 * 0x1p-25), 0x1p-14);  // carries into the normals
}

TEST(Element, EndsOfTheRanges) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(RoundTrip(kF16, 65504), 65504);
  EXPECT_EQ(RoundTrip(kF16, 65520), infinity);
  EXPECT_EQ(RoundTrip(kF16, -1e9), -infinity);
  EXPECT_EQ(RoundTrip(kBF16, 1e39), infinity);
  EXPECT_EQ(RoundTrip(kF8E5M2, 57344), 57344);
  EXPECT_EQ(RoundTrip(kF8E5M2, 70000), infinity);
  EXPECT_EQ(RoundTrip(kF8E4M3, 448), 448);
  EXPECT_EQ(RoundTrip(kF8E4M3, 464), 448);  // tie, down to even
  EXPECT_TRUE(std::isnan(RoundTrip(kF8E4M3, 465)));
  EXPECT_TRUE(std::isnan(RoundTrip(kF8E4M3, infinity)));
  EXPECT_TRUE(std::isnan(RoundTrip(kF16, std::nan(""))));
  EXPECT_TRUE(std::signbit(RoundTrip(kF8E5M2, -0.0)));
  EXPECT_EQ(RoundTrip(kS8, 200), 127);
  EXPECT_EQ(RoundTrip(kS8, -200), -128);
  EXPECT_EQ(RoundTrip(kS32, 1e10), 2147483647);
}

TEST(HostMatrix, ValuesComeBackInRowMajorOrderFromEitherLayout) {
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  for (const Layout layout : {kRowMajor, kColumnMajor}) {
    const auto matrix =
        HostMatrix::FromDoubles({.rows = 2, .cols = 3, .dtype = kF16, .layout = layout}, values);
    ASSERT_TRUE(matrix.ok()) << matrix.status();
    EXPECT_EQ(matrix->ToDoubles(), values);
    EXPECT_EQ(matrix->Get(1, 0), 4);
    EXPECT_EQ(LoadElement(matrix->data(), 1, kF16), layout == kRowMajor ? 2 : 4);
  }
}

TEST(HostMatrix, ViewKeepsTheMemoryAlive) {
  MatrixView view;
  {
    auto matrix = HostMatrix::FromDoubles({.rows = 1, .cols = 2}, {7, 8});
    ASSERT_TRUE(matrix.ok());
    view = matrix->view();
  }
  EXPECT_EQ(LoadElement(view.data, 1, kF32), 8);
}

TEST(HostMatrix, CloneIsApart) {
  auto matrix = HostMatrix::FromDoubles({.rows = 1, .cols = 2}, {7, 8});
  ASSERT_TRUE(matrix.ok());
  auto copy = matrix->Clone();
  ASSERT_TRUE(copy.ok());
  matrix->Set(0, 0, 1);
  EXPECT_THAT(copy->ToDoubles(), ElementsAre(7, 8));
}

TEST(HostMatrix, AnEmptyOneHasNothing) {
  const HostMatrix none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.bytes(), 0u);
  EXPECT_TRUE(none.ToDoubles().empty());
  const auto copy = none.Clone();
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_TRUE(copy->empty());
}

TEST(HostMatrix, BadOnesSayWhatIsWrong) {
  const absl::Status few = HostMatrix::FromDoubles({.rows = 2, .cols = 2}, {1, 2, 3}).status();
  EXPECT_EQ(few, absl::InvalidArgumentError("row_major_values has 3 values; a 2x2 f32 row-major "
                                            "has 4"));
  EXPECT_EQ(HostMatrix::FromDoubles({.rows = 0, .cols = 2}, {}).status().message(),
            "shape.rows is 0; it must be at least 1");
  const absl::Status large =
      HostMatrix::Allocate({.rows = int64_t{1} << 30, .cols = int64_t{1} << 28}).status();
  EXPECT_EQ(large,
            absl::ResourceExhaustedError("no memory for a matrix of 1152921504606846976 bytes"));
}

TEST(HostMatrix, LargeMatricesAreAllocatedWhole) {
  auto matrix = HostMatrix::Allocate({.rows = 1500, .cols = 1001});
  ASSERT_TRUE(matrix.ok());
  matrix->Set(1499, 1000, 5);
  EXPECT_EQ(matrix->Get(1499, 1000), 5);
}

TEST(Shape, BadOnesNameTheFieldTheValueAndTheBound) {
  const auto message = [](const Shape& shape) {
    const absl::Status status = CheckShape(shape, "a.shape");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(message({.rows = 0, .cols = 3}), "a.shape.rows is 0; it must be at least 1");
  EXPECT_EQ(message({.rows = 2, .cols = -5}), "a.shape.cols is -5; it must be at least 1");
  EXPECT_THAT(message({.rows = int64_t{1} << 31, .cols = int64_t{1} << 31, .dtype = kF64}),
              HasSubstr("below 2^62 bytes"));
  EXPECT_THAT(message({.rows = 2, .cols = 2, .dtype = ::gemm::v1::DATA_TYPE_UNSPECIFIED}),
              HasSubstr("a.shape.dtype is 0"));
}

TEST(Shape, HasOneOfTheTwoLayouts) {
  const Shape shape{.rows = 2, .cols = 2, .layout = ::gemm::v1::LAYOUT_UNSPECIFIED};
  EXPECT_EQ(CheckShape(shape, "a.shape"),
            absl::InvalidArgumentError("a.shape.layout is 0; it must be row-major or "
                                       "column-major"));
}

TEST(Names, OfAServersNewerTypesAreUnknown) {
  EXPECT_EQ(Name(static_cast<DataType>(77)), "?");
  EXPECT_EQ(ParseVerify("yes"), std::nullopt);
}

TEST(Names, GoBothWays) {
  for (const DataType type : {kF64, kF32, kF16, kBF16, kF8E4M3, kF8E5M2, kS8, kS32}) {
    EXPECT_EQ(ParseDataType(Name(type)), type);
    EXPECT_GT(SizeOf(type), 0u);
  }
  for (const Activation activation : {kNoActivation, kRelu, kGelu, kLeakyRelu}) {
    EXPECT_EQ(ParseActivation(Name(activation)), activation);
  }
  for (const ComputeMode mode : {kDefaultCompute, kComputeF64, kComputeF32, kComputeTF32,
                                 kComputeF16, kComputeF32x3, kComputeS32}) {
    EXPECT_EQ(ParseComputeMode(Name(mode)), mode);
  }
  EXPECT_EQ(ParseDataType("float32"), std::nullopt);
  EXPECT_EQ(ParseLayout("column"), kColumnMajor);
}

}  // namespace
}  // namespace gemmd::client
