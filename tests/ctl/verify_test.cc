// The check of a product on the client's side: right for every layout and
// epilogue, and it finds what is wrong.
#include "client/ctl/checks/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace gemmd::ctl {
namespace {

client::HostMatrix Random(const client::Shape& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> value(-1, 1);
  auto matrix = client::HostMatrix::Allocate(shape);
  EXPECT_TRUE(matrix.ok()) << matrix.status();
  for (int64_t i = 0; i < shape.rows; ++i) {
    for (int64_t j = 0; j < shape.cols; ++j) matrix->Set(i, j, value(random));
  }
  return *std::move(matrix);
}

// Everything of one product, by the definition.
struct Case {
  client::Product product;
  client::HostMatrix a, b, c, bias, result;
  HostOperands operands;

  Case(client::Layout la, bool ta, client::Layout lb, bool tb, client::Layout ld) {
    constexpr int64_t m = 5, n = 7, k = 11;
    a = Random({.rows = ta ? k : m, .cols = ta ? m : k, .layout = la}, 1);
    b = Random({.rows = tb ? n : k, .cols = tb ? k : n, .layout = lb}, 2);
    c = Random({.rows = m, .cols = n, .layout = ld}, 3);
    bias = Random({.rows = 1, .cols = n}, 4);
    product = {.a = a.view(), .b = b.view(), .c = c.view(), .bias = bias.view()};
    product.transpose_a = ta;
    product.transpose_b = tb;
    product.alpha = 1.5;
    product.beta = -0.5;
    product.activation = client::kLeakyRelu;
    product.leaky_slope = 0.1;
    operands = {.a = a.view(), .b = b.view(), .c = c.view(), .bias = bias.view()};
    result = Random({.rows = m, .cols = n, .layout = ld}, 5);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) {
          sum += (ta ? a.Get(l, i) : a.Get(i, l)) * (tb ? b.Get(j, l) : b.Get(l, j));
        }
        const double x = 1.5 * sum - 0.5 * c.Get(i, j) + bias.Get(0, j);
        result.Set(i, j, x > 0 ? x : 0.1 * x);
      }
    }
  }

  absl::StatusOr<gemm::Agreement> Check() const {
    return CheckProduct(product, operands, client::kComputeF32, result.view(), 1000, 1);
  }
};

TEST(VerifyTest, RightProductsPassAndWrongElementsAreFoundInEveryLayout) {
  const client::Layout layouts[] = {client::kRowMajor, client::kColumnMajor};
  for (const client::Layout la : layouts) {
    for (const client::Layout lb : layouts) {
      for (const client::Layout ld : layouts) {
        for (int transposes = 0; transposes < 4; ++transposes) {
          Case test(la, (transposes & 1) != 0, lb, (transposes & 2) != 0, ld);
          const auto right = test.Check();
          ASSERT_TRUE(right.ok()) << right.status();
          EXPECT_TRUE(IsRight(*right)) << Explain(*right);
          EXPECT_EQ(right->checked, 35);
          test.result.Set(3, 6, test.result.Get(3, 6) + 0.01);
          const auto wrong = test.Check();
          ASSERT_TRUE(wrong.ok()) << wrong.status();
          EXPECT_FALSE(IsRight(*wrong));
          EXPECT_EQ(wrong->worst_row, 3);
          EXPECT_EQ(wrong->worst_col, 6);
          EXPECT_THAT(Explain(*wrong), ::testing::StartsWith("element (3, 6) is off by 0.0"));
        }
      }
    }
  }
}

// A batch of three: every product is checked against its own part of what is not shared.
TEST(VerifyTest, AWrongElementOfABatchIsFoundWhereItIs) {
  for (const client::Layout layout : {client::kRowMajor, client::kColumnMajor}) {
    constexpr int64_t m = 4, n = 3, k = 5, batch = 3;
    const bool columns = layout == client::kColumnMajor;
    const client::HostMatrix a = Random({.rows = batch * m, .cols = k}, 1);
    const client::HostMatrix b = Random({.rows = k, .cols = n}, 2);
    client::HostMatrix result = Random(
        {.rows = columns ? m : batch * m, .cols = columns ? batch * n : n, .layout = layout}, 3);
    for (int64_t p = 0; p < batch; ++p) {
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t l = 0; l < k; ++l) sum += a.Get(p * m + i, l) * b.Get(l, j);
          result.Set(columns ? i : p * m + i, columns ? p * n + j : j, sum);
        }
      }
    }
    const client::Product product{.a = a.view(),
                                  .b = b.view(),
                                  .batch_count = batch,
                                  .shared = {.b = true},
                                  .output_layout = layout};
    const HostOperands operands{.a = a.view(), .b = b.view()};
    const auto check = [&](int64_t samples) {
      auto agreement =
          CheckProduct(product, operands, client::kComputeF32, result.view(), samples, 1);
      EXPECT_TRUE(agreement.ok()) << agreement.status();
      return *agreement;
    };
    EXPECT_TRUE(IsRight(check(1000)));
    EXPECT_EQ(check(1000).checked, batch * m * n);
    EXPECT_LT(check(2).checked, batch * m * n) << "the first and the last product";
    const int64_t row = columns ? 1 : 2 * m + 1, col = columns ? 2 * n + 2 : 2;
    result.Set(row, col, result.Get(row, col) + 0.5);
    const gemm::Agreement wrong = check(1000);
    EXPECT_FALSE(IsRight(wrong));
    EXPECT_EQ(wrong.worst_row, row);
    EXPECT_EQ(wrong.worst_col, col);
  }
}

// Products of 2, 0 and 3 rows of A and of the result, each with its own B.
TEST(VerifyTest, AWrongElementOfAGroupIsFoundWhereItIs) {
  constexpr int64_t n = 3, k = 5;
  const std::vector<client::ProductSize> group = {{2, n, k}, {0, n, k}, {3, n, k}};
  const client::HostMatrix a = Random({.rows = 5, .cols = k}, 1);
  const client::HostMatrix b = Random({.rows = 3 * k, .cols = n}, 2);
  client::HostMatrix result = Random({.rows = 5, .cols = n}, 3);
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += a.Get(i, l) * b.Get((i < 2 ? 0 : 2) * k + l, j);
      result.Set(i, j, sum);
    }
  }
  const client::Product product{.a = a.view(), .b = b.view(), .group = group};
  const auto check = [&] {
    auto agreement = CheckProduct(product, {.a = a.view(), .b = b.view()}, client::kComputeF32,
                                  result.view(), 1000, 1);
    EXPECT_TRUE(agreement.ok()) << agreement.status();
    return *agreement;
  };
  EXPECT_TRUE(IsRight(check()));
  EXPECT_EQ(check().checked, 5 * n);
  result.Set(3, 2, result.Get(3, 2) + 0.5);
  EXPECT_FALSE(IsRight(check()));
  EXPECT_EQ(check().worst_row, 3);
  EXPECT_EQ(check().worst_col, 2);
}

// A k of 0 leaves 0, and no other value.
TEST(VerifyTest, AProductOfAGroupMayBeEmpty) {
  const client::HostMatrix a = Random({.rows = 4, .cols = 2}, 1);
  const client::HostMatrix b = Random({.rows = 4, .cols = 3}, 2);
  client::HostMatrix result = Random({.rows = 4, .cols = 3}, 3);
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < 4; ++l) sum += a.Get(l, i % 2) * b.Get(l, j);
      result.Set(i, j, i < 2 ? 0 : sum);
    }
  }
  const client::Product product{
      .a = a.view(), .b = b.view(), .group = {{2, 3, 0}, {2, 3, 4}}, .transpose_a = true};
  const auto check = [&] {
    return CheckProduct(product, {.a = a.view(), .b = b.view()}, client::kComputeF32, result.view(),
                        1000, 1);
  };
  ASSERT_TRUE(check().ok()) << check().status();
  EXPECT_TRUE(IsRight(*check())) << Explain(*check());
  EXPECT_EQ(check()->checked, 12);
  result.Set(1, 1, 0.25);
  EXPECT_FALSE(IsRight(*check()));
}

TEST(VerifyTest, NotANumberIsWrong) {
  Case test(client::kRowMajor, false, client::kRowMajor, false, client::kRowMajor);
  test.result.Set(0, 0, std::nan(""));
  const auto agreement = test.Check();
  ASSERT_TRUE(agreement.ok()) << agreement.status();
  EXPECT_FALSE(IsRight(*agreement));
  EXPECT_THAT(Explain(*agreement), ::testing::StartsWith("element (0, 0) is NaN; it must be "));
}

// Nothing finite was compared, which is not the same as an exact product.
TEST(VerifyTest, NotANumberIsNoSmallInteger) {
  Case test(client::kRowMajor, false, client::kRowMajor, false, client::kRowMajor);
  for (int64_t j = 0; j < 7; ++j) test.b.Set(0, j, std::nan(""));
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 7; ++j) test.result.Set(i, j, std::nan(""));
  }
  const auto agreement = test.Check();
  ASSERT_TRUE(agreement.ok()) << agreement.status();
  EXPECT_TRUE(IsRight(*agreement));
  EXPECT_THAT(ExplainResolution(*agreement, gemm::Elements::kAny),
              ::testing::HasSubstr("only NaN and infinities were compared"));
  test.result.Set(2, 3, 5);
  EXPECT_EQ(Explain(*test.Check()), "element (2, 3) is 5; it must be NaN");
}

TEST(VerifyTest, ShapesThatDoNotFitAreRefused) {
  Case test(client::kRowMajor, false, client::kRowMajor, false, client::kRowMajor);
  test.product.transpose_a = true;
  EXPECT_EQ(test.Check().status().code(), absl::StatusCode::kInvalidArgument);
  test.product.transpose_a = false;
  const client::HostMatrix narrow = Random({.rows = 1, .cols = 3}, 6);
  test.operands.bias = narrow.view();
  EXPECT_EQ(test.Check().status().code(), absl::StatusCode::kInvalidArgument);
}

// The bound of drawn elements is for those alone that are: not for a caller's own, not for
// equal seeds, which draw equal elements, and not for elements of one sign.
TEST(VerifyTest, KnowsWhichElementsAreDrawn) {
  const client::Generated a{.seed = 1, .distribution = client::Uniform{.low = -1, .high = 1}};
  client::Generated b = a;
  EXPECT_EQ(WhatIsKnown(a, b), gemm::Elements::kAny);
  b.seed = 2;
  EXPECT_EQ(WhatIsKnown(a, b), gemm::Elements::kDrawn);
  b.distribution = client::Uniform{.low = 0, .high = 1};
  EXPECT_EQ(WhatIsKnown(a, b), gemm::Elements::kDrawn);
  client::Generated positive = b;
  positive.seed = 3;
  EXPECT_EQ(WhatIsKnown(positive, b), gemm::Elements::kAny);
  EXPECT_EQ(WhatIsKnown(a, client::MatrixView{}), gemm::Elements::kAny);
}

// f16 accumulators may lose 128 of a sum of 1000, and of signs nothing.
TEST(VerifyTest, SmallIntegersAreComparedExactly) {
  constexpr int64_t k = 1000;
  auto a = client::HostMatrix::Allocate({.rows = 2, .cols = k, .dtype = client::kF16});
  auto d =
      client::HostMatrix::FromDoubles({.rows = 2, .cols = 2, .dtype = client::kF16}, {k, 0, 0, k});
  ASSERT_TRUE(a.ok() && d.ok());
  for (int64_t i = 0; i < k; ++i) {
    a->Set(0, i, 1);
    a->Set(1, i, i % 2 == 0 ? 1 : -1);
  }
  const client::Product product = {.a = a->view(), .b = a->view(), .transpose_b = true};
  const HostOperands operands = {.a = a->view(), .b = a->view()};
  const auto check = [&] {
    auto agreement =
        CheckProduct(product, operands, client::kComputeF16, d->view(), 100, /*seed=*/1);
    EXPECT_TRUE(agreement.ok()) << agreement.status();
    return *agreement;
  };
  EXPECT_TRUE(IsRight(check())) << Explain(check());
  EXPECT_EQ(ExplainResolution(check(), operands.known),
            "every error is seen: operands of small integers have one right result");
  d->Set(0, 0, k - 1);
  EXPECT_FALSE(IsRight(check()));
  a->Set(0, 0, 0.5);
  EXPECT_TRUE(IsRight(check())) << "no longer integers";
  EXPECT_THAT(ExplainResolution(check(), operands.known), ::testing::HasSubstr("worst case"));
}

TEST(VerifyTest, SaysHowMuchItSees) {
  EXPECT_EQ(ExplainResolution({.resolution = 0.5}, gemm::Elements::kDrawn),
            "errors above 0.500 of a typical element are seen");
  EXPECT_THAT(ExplainResolution({.resolution = 0.5}, gemm::Elements::kAny),
              ::testing::HasSubstr("worst case"));
}

TEST(VerifyTest, DrawnMatricesDependOnTheSeedAndNotOnTheLayout) {
  const client::Generated row{.shape = {.rows = 4, .cols = 6, .dtype = client::kF64},
                              .seed = 9,
                              .distribution = client::Normal{.mean = 1, .stddev = 2}};
  client::Generated column = row;
  column.shape.layout = client::kColumnMajor;
  client::Generated other = row;
  other.seed = 10;
  const auto values = [](const client::Generated& generated) {
    const auto matrix = DrawHere(generated);
    EXPECT_TRUE(matrix.ok()) << matrix.status();
    return matrix->ToDoubles();
  };
  EXPECT_EQ(values(row), values(column));
  EXPECT_NE(values(row), values(other));
}

// Small integers, which every type holds and adds exactly.
TEST(VerifyTest, EveryTypeAndArithmeticIsChecked) {
  struct Arithmetic {
    client::DataType factors, result;
    client::ComputeMode compute;
  };
  const Arithmetic table[] = {
      {client::kF64, client::kF64, client::kDefaultCompute},
      {client::kF64, client::kF64, client::kComputeF64},
      {client::kF32, client::kF32, client::kDefaultCompute},
      {client::kF32, client::kF32, client::kComputeTF32},
      {client::kF32, client::kF32, client::kComputeF32x3},
      {client::kF16, client::kF16, client::kComputeF16},
      {client::kBF16, client::kF32, client::kComputeF32},
      {client::kF8E4M3, client::kF16, client::kComputeF32},
      {client::kF8E5M2, client::kF16, client::kComputeF32},
      {client::kS8, client::kS32, client::kDefaultCompute},
      {client::kS8, client::kS32, client::kComputeS32},
      {client::kS8, client::kBF16, client::kDefaultCompute},
  };
  for (const Arithmetic& row : table) {
    const std::vector<double> values = {1, -2, 0, 2};
    const auto a =
        client::HostMatrix::FromDoubles({.rows = 2, .cols = 2, .dtype = row.factors}, values);
    auto d =
        client::HostMatrix::FromDoubles({.rows = 2, .cols = 2, .dtype = row.result}, {1, -6, 0, 4});
    ASSERT_TRUE(a.ok() && d.ok());
    const client::Product product = {.a = a->view(), .b = a->view()};
    const HostOperands operands = {.a = a->view(), .b = a->view()};
    const auto right = CheckProduct(product, operands, row.compute, d->view(), 100, 1);
    ASSERT_TRUE(right.ok()) << right.status();
    EXPECT_TRUE(IsRight(*right)) << client::Name(row.factors) << ": " << Explain(*right);
    d->Set(1, 1, 5);
    EXPECT_FALSE(IsRight(*CheckProduct(product, operands, row.compute, d->view(), 100, 1)))
        << client::Name(row.factors);
  }
}

}  // namespace
}  // namespace gemmd::ctl
