// The oracle's bound: right products stay within it, wrong ones do not.
#include "gemm/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/kernels/emulated_kernel.h"
#include "tests/kernels/product_case.h"

namespace gemm::testing {
namespace {

const Kernel& Reference() { return **FindKernel("host_reference"); }

std::vector<Types> AllTypes() { return {Reference().types.begin(), Reference().types.end()}; }

std::string TypesName(const ::testing::TestParamInfo<Types>& info) {
  std::string name;
  for (const absl::string_view part :
       {Name(info.param.a), Name(info.param.b), Name(info.param.d), Name(info.param.compute)}) {
    name += (name.empty() ? "" : "_") + std::string(part);
  }
  return name;
}

TEST(ExpectedElements, AreThoseOfTheirOwn) {
  ProductData data({.problem = {.m = 5, .n = 4, .k = 33, .types = AllTypes().front()}});
  const Problem& problem = data.product.problem;
  const Operands host = data.ForReference();
  ExpectedElements elements(problem, host, Elements::kDrawn);
  for (int64_t i = 0; i < problem.m; ++i) {
    for (int64_t j = 0; j < problem.n; ++j) {
      const Expected one = ExpectedElement(problem, host, Elements::kDrawn, i, j);
      const Expected other = elements.At(i, j);
      EXPECT_NE(one.value, 0);
      EXPECT_EQ(one.value, other.value) << i << ", " << j;
      EXPECT_EQ(one.tolerance, other.tolerance) << i << ", " << j;
    }
  }
}

double WorstRatio(const ProductData& data) {
  return CompareWithReference(data.product.problem, data.ForReference(), data.product.elements,
                              1 << 20, 1)
      .worst_ratio;
}

class Bound : public ::testing::TestWithParam<Types> {
 protected:
  static ProductCase Case(int64_t k) {
    ProductCase product;
    product.problem = {.m = 40, .n = 36, .k = k, .types = GetParam()};
    return product;
  }
};

TEST_P(Bound, HoldsForARightProduct) {
  for (const int64_t k : {1, 33, 300}) {
    ProductData data(Case(k));
    ASSERT_TRUE(RunOnHost(Reference(), data).ok());
    EXPECT_LE(WorstRatio(data), 1);
  }
}

// The defect that split-K kernels are known for.
TEST_P(Bound, SeesADroppedTailOfK) {
  // f16 accumulation hides one product of 90 within its own error.
  const int64_t longest = GetParam().compute == Compute::kF16 ? 40 : 90;
  for (const int64_t k : {int64_t{2}, int64_t{33}, longest}) {
    ProductData data(Case(k));
    data.product.problem.k = k - 1;
    ASSERT_TRUE(RunOnHost(Reference(), data).ok());
    EXPECT_LE(WorstRatio(data), 1);  // right for k - 1
    data.product.problem.k = k;
    EXPECT_GT(WorstRatio(data), 1);
  }
}

TEST_P(Bound, SeesSwappedRows) {
  ProductData data(Case(64));
  ASSERT_TRUE(RunOnHost(Reference(), data).ok());
  const size_t pitch = static_cast<size_t>(data.d.ld()) * SizeOf(data.d.type());
  std::byte* rows = static_cast<std::byte*>(data.d.data());
  std::swap_ranges(rows, rows + pitch, rows + 5 * pitch);
  const Agreement agreement =
      CompareWithReference(data.product.problem, data.ForReference(), Elements::kDrawn, 1 << 20, 1);
  EXPECT_GT(agreement.worst_ratio, 1);
  EXPECT_TRUE(agreement.worst_row == 0 || agreement.worst_row == 5);
}

TEST_P(Bound, SeesOneElementJustBeyondIt) {
  ProductData data(Case(20));
  ASSERT_TRUE(RunOnHost(Reference(), data).ok());
  const Expected expected =
      ExpectedElement(data.product.problem, data.ForReference(), Elements::kDrawn, 17, 9);
  const double unit = std::abs(expected.value) * 4 * UnitRoundoff(data.d.type());
  const double step = data.d.type() == DType::kS32 ? 1 : unit;
  StoreElement(data.d.data(), 17 * data.d.ld() + 9, data.d.type(),
               expected.value + expected.tolerance + step);
  const Agreement agreement =
      CompareWithReference(data.product.problem, data.ForReference(), Elements::kDrawn, 1 << 20, 1);
  EXPECT_GT(agreement.worst_ratio, 1);
  EXPECT_EQ(agreement.worst_row, 17);
  EXPECT_EQ(agreement.worst_col, 9);
  EXPECT_EQ(agreement.checked, 40 * 36);
}

TEST_P(Bound, UntouchedOutputIsInfinitelyWrong) {
  ProductData data(Case(5));
  EXPECT_EQ(WorstRatio(data), std::numeric_limits<double>::infinity());
}

TEST_P(Bound, SeesAForgottenBiasAndActivation) {
  ProductCase product = Case(24);
  product.problem.bias = BiasAxis::kColumns;
  product.problem.activation = Activation::kGelu;
  for (const bool forget_bias : {false, true}) {
    ProductData data(product);
    Problem& problem = data.product.problem;
    const Problem right = problem;
    (forget_bias ? problem.bias = BiasAxis::kNone,
     true        : (problem.activation = Activation::kNone, true));
    ASSERT_TRUE(RunOnHost(Reference(), data).ok());
    problem = right;
    EXPECT_GT(WorstRatio(data), 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Bound, ::testing::ValuesIn(AllTypes()), TypesName);

// Bounds relative to the sum of magnitudes, at k = 256: nothing is generous.
TEST(BoundSize, IsThatOfTheTypes) {
  const auto relative = [](const Types& types) {
    ProductCase product;
    product.problem = {.m = 1, .n = 1, .k = 256, .types = types};
    ProductData data(product);
    double magnitude = 0;
    for (int64_t p = 0; p < 256; ++p) magnitude += std::abs(data.a.At(0, p) * data.b.At(p, 0));
    return ExpectedElement(data.product.problem, data.ForReference(), Elements::kAny, 0, 0)
               .tolerance /
           magnitude;
  };
  EXPECT_LT(relative({DType::kF64, DType::kF64, DType::kF64, Compute::kF64}), 1e-13);
  EXPECT_LT(relative({DType::kF32, DType::kF32, DType::kF32, Compute::kF32}), 2e-5);
  EXPECT_LT(relative({DType::kF32, DType::kF32, DType::kF32, Compute::kTF32}), 3e-3);
  EXPECT_LT(relative({DType::kF32, DType::kF32, DType::kF32, Compute::kF32x3}), 3e-5);
  EXPECT_LT(relative({DType::kF16, DType::kF16, DType::kF16, Compute::kF32}), 6e-4);
  EXPECT_LT(relative({DType::kBF16, DType::kBF16, DType::kF32, Compute::kF32}), 4e-5);
  EXPECT_LT(relative({DType::kE4M3, DType::kE4M3, DType::kF32, Compute::kF32}), 2e-2);
}

// Sums of one sign in one chain of f16 additions stop growing at 2048, where 2048 + 1 rounds
// to 2048. The worst case has to allow it, and the bound of drawn products is smaller.
TEST(BoundSize, OneChainOfF16OnesIsWithinTheWorstCase) {
  ProductCase product;
  product.problem = {
      .m = 1, .n = 1, .k = 3000, .types = {DType::kF16, DType::kF16, DType::kF16, Compute::kF16}};
  ProductData data(product);
  for (int64_t p = 0; p < 3000; ++p) {
    data.a.Set(0, p, 1);
    data.b.Set(p, 0, 1);
  }
  RunEmulated(data);
  EXPECT_EQ(data.d.At(0, 0), 2048);
  const auto ratio = [&](Elements elements) {
    return CompareWithReference(data.product.problem, data.ForReference(), elements, 1, 1)
        .worst_ratio;
  };
  EXPECT_LE(ratio(Elements::kAny), 1);
  EXPECT_GT(ratio(Elements::kDrawn), 1);
}

// The worst case may allow anything when the bound of drawn elements does not. The resolution says
// so.
TEST(BoundSize, ResolutionSaysWhatIsSeen) {
  const auto resolution = [](const Types& types, Elements elements) {
    ProductCase product;
    product.problem = {.m = 8, .n = 8, .k = 4096, .types = types};
    ProductData data(product);
    return CompareWithReference(product.problem, data.ForReference(), elements, 64, 1).resolution;
  };
  const Types f16{DType::kF16, DType::kF16, DType::kF16, Compute::kF16};
  const Types f32{DType::kF32, DType::kF32, DType::kF32, Compute::kF32};
  EXPECT_GT(resolution(f16, Elements::kAny), 10);
  EXPECT_LT(resolution(f16, Elements::kDrawn), 2);
  EXPECT_LT(resolution(f32, Elements::kAny), 0.1);
  EXPECT_LT(resolution(f32, Elements::kDrawn), 0.001);
  EXPECT_EQ(resolution(f32, Elements::kExact), 0);
}

// Every case multiplies: without the product, A and B would not be tested.
TEST(RandomCases, MultiplyAlways) {
  std::mt19937_64 random(1);
  const Types types = AllTypes().front();
  for (int i = 0; i < 1000; ++i) EXPECT_NE(RandomCase(types, 1, 1, 1, random).problem.alpha, 0);
}

// A f16 product of one element, with A = a and B = b.
ProductData OneF16(double a, double b) {
  ProductCase product;
  product.problem = {
      .m = 1, .n = 1, .k = 1, .types = {DType::kF16, DType::kF16, DType::kF16, Compute::kF32}};
  ProductData data(product);
  StoreElement(data.a.data(), 0, DType::kF16, a);
  StoreElement(data.b.data(), 0, DType::kF16, b);
  return data;
}

TEST(SpecialValues, OverflowIsInfinityOfTheRightSign) {
  ProductData data = OneF16(300, 300);
  StoreElement(data.d.data(), 0, DType::kF16, std::numeric_limits<double>::infinity());
  EXPECT_LE(WorstRatio(data), 1);
  StoreElement(data.d.data(), 0, DType::kF16, -std::numeric_limits<double>::infinity());
  EXPECT_GT(WorstRatio(data), 1);
  StoreElement(data.d.data(), 0, DType::kF16, 65504);
  EXPECT_GT(WorstRatio(data), 1);
}

TEST(SpecialValues, InfinityForASmallResultIsWrong) {
  ProductData data = OneF16(2, 3);
  StoreElement(data.d.data(), 0, DType::kF16, std::numeric_limits<double>::infinity());
  EXPECT_GT(WorstRatio(data), 1);
}

TEST(SpecialValues, NaNIsExpectedFromNaN) {
  ProductData data = OneF16(std::nan(""), 3);
  StoreElement(data.d.data(), 0, DType::kF16, std::nan(""));
  EXPECT_LE(WorstRatio(data), 1);
  StoreElement(data.d.data(), 0, DType::kF16, 3);
  EXPECT_GT(WorstRatio(data), 1);
}

TEST(Sampling, CornersAndEdgesAreAmongTheSamples) {
  ProductCase product;
  product.problem = {.m = 300, .n = 200, .k = 2};
  ProductData data(product);
  ASSERT_TRUE(RunOnHost(Reference(), data).ok());
  for (const auto& [i, j] : {std::pair<int64_t, int64_t>{0, 0}, {0, 199}, {299, 0}, {299, 199}}) {
    ProductData wrong = data;
    StoreElement(wrong.d.data(), i * wrong.d.ld() + j, DType::kF32, 1e6);
    const Agreement agreement =
        CompareWithReference(product.problem, wrong.ForReference(), Elements::kDrawn, 100, 3);
    EXPECT_GT(agreement.worst_ratio, 1) << i << ", " << j;
    EXPECT_LE(agreement.checked, 100);
  }
}

}  // namespace
}  // namespace gemm::testing
