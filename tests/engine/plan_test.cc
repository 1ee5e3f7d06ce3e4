#include "server/engine/job/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/engine/planned_product.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr gemm::DType kF32 = gemm::DType::kF32;

class PlanOrders : public ::testing::TestWithParam<int> {};

// Small integers, so every sum is exact.
TEST_P(PlanOrders, GiveTheProductThatTheCallerMeans) {
  constexpr int64_t kM = 3, kN = 4, kK = 5;
  const PlanOrder c = PlanOrder::Of(GetParam());
  Stored a =
      Fill(c.transpose_a ? Shape{kK, kM, kF32, c.a_columns} : Shape{kM, kK, kF32, c.a_columns}, 1);
  Stored b =
      Fill(c.transpose_b ? Shape{kN, kK, kF32, c.b_columns} : Shape{kK, kN, kF32, c.b_columns}, 2);
  Stored added = Fill({kM, kN, kF32, c.d_columns}, 3);
  Stored bias = Fill({1, kN, kF32}, 4);
  Stored d = Fill(added.shape, -1000);

  JobSpec spec;
  spec.transpose_a = c.transpose_a;
  spec.transpose_b = c.transpose_b;
  spec.output_column_major = c.d_columns;
  spec.alpha = 2;
  spec.scale_a = 3;
  spec.scale_b = 5;
  spec.beta = 7;
  OperandShapes shapes;
  shapes[Role::kA] = a.shape;
  shapes[Role::kB] = b.shape;
  shapes[Role::kC] = added.shape;
  shapes[Role::kBias] = bias.shape;
  const absl::StatusOr<Plan> plan = MakePlan(spec, shapes);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->m, kM);
  EXPECT_EQ(plan->n, kN);
  EXPECT_EQ(plan->k, kK);
  EXPECT_EQ(plan->result, d.shape);
  Multiply(
      plan->problem,
      BindOperands(*plan, {a.memory(), b.memory(), added.memory(), bias.memory()}, d.memory()));

  for (int64_t i = 0; i < kM; ++i) {
    for (int64_t j = 0; j < kN; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < kK; ++l) {
        sum +=
            (c.transpose_a ? a.at(l, i) : a.at(i, l)) * (c.transpose_b ? b.at(j, l) : b.at(l, j));
      }
      EXPECT_EQ(d.at(i, j), 30 * sum + 7 * added.at(i, j) + bias.at(0, j)) << i << ", " << j;
    }
  }
}

// As what one product has is laid out, in the lines of one matrix: each product of a batch reads
// and writes its own part, in every order.
TEST_P(PlanOrders, GiveEveryProductOfABatch) {
  constexpr int64_t kM = 3, kN = 4, kK = 5, kBatch = 3;
  const PlanOrder c = PlanOrder::Of(GetParam());
  const auto shape = [](int64_t rows, int64_t cols, bool turned, bool columns) {
    return turned ? Shape{cols, rows, kF32, columns} : Shape{rows, cols, kF32, columns};
  };
  const Shape one_a = shape(kM, kK, c.transpose_a, c.a_columns);
  const Shape one_b = shape(kK, kN, c.transpose_b, c.b_columns);
  const Shape one_d{kM, kN, kF32, c.d_columns};
  const auto stacked = [](Shape one) {
    (one.column_major ? one.cols : one.rows) *= kBatch;
    return one;
  };
  Stored a = Fill(stacked(one_a), 1), b = Fill(stacked(one_b), 2), added = Fill(stacked(one_d), 3);
  Stored bias = Fill({kBatch, kN, kF32}, 4);
  Stored d = Fill(added.shape, -1000);
  JobSpec spec;
  spec.transpose_a = c.transpose_a;
  spec.transpose_b = c.transpose_b;
  spec.output_column_major = c.d_columns;
  spec.beta = 7;
  OperandShapes shapes;
  shapes[Role::kA] = a.shape;
  shapes[Role::kB] = b.shape;
  shapes[Role::kC] = added.shape;
  shapes[Role::kBias] = bias.shape;
  spec.batch = kBatch;
  const absl::StatusOr<Plan> plan = MakePlan(spec, shapes);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->result, d.shape);
  const gemm::Operands operands =
      BindOperands(*plan, {a.memory(), b.memory(), added.memory(), bias.memory()}, d.memory());
  for (int64_t i = 0; i < kBatch; ++i) {
    Multiply(plan->problem, gemm::OperandsFrom(plan->problem, operands, i));
  }

  // The same products, each planned alone on its part.
  spec.batch = 1;
  shapes[Role::kA] = one_a;
  shapes[Role::kB] = one_b;
  shapes[Role::kC] = one_d;
  shapes[Role::kBias] = Shape{1, kN, kF32};
  const absl::StatusOr<Plan> alone = MakePlan(spec, shapes);
  ASSERT_TRUE(alone.ok()) << alone.status();
  const auto part = [](const Stored& all, const Shape& one, int64_t i) {
    const auto begin = all.values.begin() + i * one.rows * one.cols;
    return Stored{one, {begin, begin + one.rows * one.cols}};
  };
  for (int64_t i = 0; i < kBatch; ++i) {
    Stored result = part(d, one_d, i);
    const std::vector<float> in_the_batch = result.values;
    const Stored one_bias = part(bias, *shapes[Role::kBias], i);
    const Stored a_i = part(a, one_a, i), b_i = part(b, one_b, i), c_i = part(added, one_d, i);
    Multiply(alone->problem,
             BindOperands(*alone, {a_i.memory(), b_i.memory(), c_i.memory(), one_bias.memory()},
                          result.memory()));
    EXPECT_EQ(in_the_batch, result.values) << "product " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PlanOrders, ::testing::Range(0, 32));

class PlanTest : public ::testing::Test {
 protected:
  PlanTest() {
    shapes_[Role::kA] = Shape{3, 5, kF32};
    shapes_[Role::kB] = Shape{5, 4, kF32};
  }
  Plan Make() {
    const absl::StatusOr<Plan> plan = MakePlan(spec_, shapes_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.value_or(Plan());
  }
  std::string Refusal() {
    const absl::Status status = MakePlan(spec_, shapes_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  JobSpec spec_;
  OperandShapes shapes_;
};

TEST_F(PlanTest, WithoutMoreItIsThePlainProduct) {
  const Plan plan = Make();
  EXPECT_EQ(plan.problem.alpha, 1);
  EXPECT_EQ(plan.problem.beta, 0);
  EXPECT_EQ(plan.problem.bias, gemm::BiasAxis::kNone);
  EXPECT_EQ(plan.problem.activation, gemm::Activation::kNone);
  EXPECT_EQ(plan.problem.types, (gemm::Types{kF32, kF32, kF32, gemm::Compute::kF32}));
}

TEST_F(PlanTest, ABlockOfRowsIsChosenForAsTheWholeProductAndIsItsOwn) {
  EXPECT_EQ(Make().WholeProblem().m, 3);
  spec_.product_rows = 70;
  const Plan plan = Make();
  EXPECT_EQ(plan.WholeProblem().m, 70);
  EXPECT_EQ(plan.WholeProblem().n, 4);
  EXPECT_EQ(plan.WholeProblem().k, 5);
  EXPECT_EQ(plan.problem.m, 3);
  EXPECT_EQ(plan.m, 3);
  EXPECT_EQ(plan.result, (Shape{3, 4, kF32}));
}

TEST_F(PlanTest, ABlockOfRowsIsPartOfARowMajorProductThatMayBe) {
  spec_.product_rows = 3;
  EXPECT_EQ(Make().WholeProblem().m, 3) << "the only block";
  spec_.product_rows = 2;
  EXPECT_THAT(Refusal(), HasSubstr("row_block.product_rows is 2, but must be at least 3"));
  spec_.product_rows = int64_t{1} << 57;
  EXPECT_THAT(Refusal(), HasSubstr("a matrix of the whole product is 144115188075855872x5"));
  spec_.product_rows = 70;
  spec_.output_column_major = true;
  EXPECT_THAT(Refusal(), HasSubstr("output_layout is column-major"));
}

TEST_F(PlanTest, SentBytesAreThoseOfOperandsAndResultInPitchedLines) {
  const gemm::Problem problem{
      .m = 3,
      .n = 4,
      .k = 5,
      .types = {gemm::DType::kF16, gemm::DType::kF16, kF32, gemm::Compute::kF32}};
  EXPECT_EQ(SentBytes(problem), 3u * 16 + 5 * 16 + 3 * 16) << "lines start on 16 bytes";
  gemm::Problem turned = problem;
  turned.trans_a = turned.trans_b = true;
  EXPECT_EQ(SentBytes(turned), 5u * 16 + 4 * 16 + 3 * 16);
}

TEST_F(PlanTest, TakesTheActivationWithItsSlope) {
  spec_.activation = gemm::Activation::kLeakyRelu;
  spec_.leaky_slope = 0.25;
  const Plan plan = Make();
  EXPECT_EQ(plan.problem.activation, gemm::Activation::kLeakyRelu);
  EXPECT_EQ(plan.problem.leaky_slope, 0.25);
}

TEST_F(PlanTest, TheResultHasTheTypeOfAUnlessItIsGiven) {
  for (const gemm::DType type : {gemm::DType::kF16, gemm::DType::kBF16, gemm::DType::kF64}) {
    shapes_[Role::kA]->type = shapes_[Role::kB]->type = type;
    EXPECT_EQ(Make().result.type, type);
  }
  for (const gemm::DType type : {gemm::DType::kE4M3, gemm::DType::kE5M2}) {
    shapes_[Role::kA]->type = type;
    EXPECT_EQ(Make().result.type, gemm::DType::kF16) << "no kernel writes fp8";
  }
  shapes_[Role::kA]->type = gemm::DType::kS8;
  EXPECT_EQ(Make().result.type, gemm::DType::kS32);
  spec_.output_type = kF32;
  EXPECT_EQ(Make().result.type, kF32);
  EXPECT_EQ(Make().problem.types.d, kF32);
}

TEST_F(PlanTest, ComputesInF64ForF64AndInS32ForS8AndElseInF32UnlessItIsGiven) {
  shapes_[Role::kA]->type = gemm::DType::kF64;
  EXPECT_EQ(Make().problem.types.compute, gemm::Compute::kF64);
  shapes_[Role::kA]->type = gemm::DType::kF16;
  EXPECT_EQ(Make().problem.types.compute, gemm::Compute::kF32);
  shapes_[Role::kA]->type = gemm::DType::kS8;
  EXPECT_EQ(Make().problem.types.compute, gemm::Compute::kS32);
  spec_.compute = gemm::Compute::kF16;
  EXPECT_EQ(Make().problem.types.compute, gemm::Compute::kF16);
}

TEST_F(PlanTest, AnS32ResultIsASumOfIntegers) {
  shapes_[Role::kA]->type = shapes_[Role::kB]->type = gemm::DType::kS8;
  spec_.scale_a = 0.5;
  EXPECT_THAT(Refusal(), HasSubstr("alpha * scale_a * scale_b is 0.5, but must be 0 or 1"));
  spec_.scale_b = 2;
  EXPECT_EQ(Make().problem.alpha, 1);
  spec_.activation = gemm::Activation::kGelu;
  EXPECT_THAT(Refusal(), HasSubstr("activation is gelu, but must be none or relu"));
  spec_.output_type = gemm::DType::kBF16;
  EXPECT_EQ(Make().problem.activation, gemm::Activation::kGelu);
}

TEST_F(PlanTest, ASwappedProductSwapsTheTypes) {
  shapes_[Role::kA]->type = gemm::DType::kE4M3;
  shapes_[Role::kB]->type = gemm::DType::kE5M2;
  EXPECT_EQ(Make().problem.types.a, gemm::DType::kE4M3);
  spec_.output_column_major = true;
  EXPECT_EQ(Make().problem.types.a, gemm::DType::kE5M2);
  EXPECT_EQ(Make().problem.types.b, gemm::DType::kE4M3);
}

TEST_F(PlanTest, InnerDimensionsThatDifferAreNamed) {
  shapes_[Role::kB] = Shape{6, 4, kF32};
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("op(a) is 3x5"), HasSubstr("op(b) is 6x4")));
  shapes_[Role::kB] = Shape{5, 4, kF32};
  spec_.transpose_b = true;
  EXPECT_THAT(Refusal(), HasSubstr("op(b) is 4x5"));
}

TEST_F(PlanTest, BetaAndCComeTogether) {
  spec_.beta = 2;
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("beta is 2"), HasSubstr("no c")));
  spec_.beta = 0;
  shapes_[Role::kC] = Shape{3, 4, kF32};
  EXPECT_THAT(Refusal(), HasSubstr("beta is 0"));
}

TEST_F(PlanTest, CIsAsTheResult) {
  spec_.beta = 1;
  for (const Shape& wrong : {Shape{4, 3, kF32}, Shape{3, 4, gemm::DType::kF16},
                             Shape{3, 4, kF32, /*column_major=*/true}, Shape{3, 5, kF32}}) {
    shapes_[Role::kC] = wrong;
    EXPECT_THAT(Refusal(),
                AllOf(HasSubstr("c is " + ToString(wrong)), HasSubstr("3x4 f32 row-major")));
  }
}

TEST_F(PlanTest, BiasIsOneRowOfTheResult) {
  for (const Shape& wrong :
       {Shape{1, 3, kF32}, Shape{4, 1, kF32}, Shape{2, 4, kF32}, Shape{1, 4, gemm::DType::kF16}}) {
    shapes_[Role::kBias] = wrong;
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("bias is " + ToString(wrong)), HasSubstr("1x4 f32")));
  }
  shapes_[Role::kBias] = Shape{1, 4, kF32, /*column_major=*/true};
  EXPECT_THAT(Refusal(), HasSubstr("row-major"));
}

TEST_F(PlanTest, ScalarsThatAreNotFiniteOrLeaveTheirRangeAreNamed) {
  spec_.alpha = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(Refusal(), HasSubstr("alpha"));
  spec_.alpha = 1e30;
  spec_.scale_a = 1e30;
  EXPECT_THAT(Refusal(), HasSubstr("alpha * scale_a * scale_b"));
}

TEST_F(PlanTest, AResultThatIsTooLargeIsRefused) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  shapes_[Role::kA] = Shape{kHuge, 1, kF32};
  shapes_[Role::kB] = Shape{1, kHuge, kF32};
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("the result"), HasSubstr("2^60")));
}

TEST_F(PlanTest, ABatchStacksWhatItDoesNotShare) {
  spec_.batch = 3;
  spec_.beta = 1;
  spec_.shared[Role::kB] = true;
  shapes_[Role::kA] = Shape{9, 5, kF32};
  shapes_[Role::kC] = Shape{9, 4, kF32};
  shapes_[Role::kBias] = Shape{3, 4, kF32};
  Plan plan = Make();
  EXPECT_EQ(plan.problem.batch, 3);
  EXPECT_EQ(plan.problem.m, 3);
  EXPECT_EQ(plan.problem.k, 5);
  EXPECT_EQ(plan.result, (Shape{9, 4, kF32}));
  EXPECT_TRUE(plan.Shares(Role::kB));
  EXPECT_FALSE(plan.Shares(Role::kA));

  spec_.output_column_major = true;
  shapes_[Role::kC] = Shape{3, 12, kF32, /*column_major=*/true};
  plan = Make();
  EXPECT_EQ(plan.result, (Shape{3, 12, kF32, /*column_major=*/true}));

  spec_.shared[Role::kC] = true;
  shapes_[Role::kC] = Shape{3, 4, kF32, /*column_major=*/true};
  spec_.shared[Role::kBias] = true;
  shapes_[Role::kBias] = Shape{1, 4, kF32};
  EXPECT_EQ(Make().result, plan.result);
}

TEST_F(PlanTest, ABatchOfOneSharesNothing) {
  spec_.shared = {true, true, false, false};
  const Plan plan = Make();
  EXPECT_FALSE(plan.Shares(Role::kA));
  const float data[1] = {};
  const gemm::Operands operands =
      BindOperands(plan, {{{data, 8}, {data, 4}, {}, {data}}}, {data, 4});
  EXPECT_EQ(operands.stride_a, 0);
  EXPECT_EQ(operands.stride_d, 0) << "one plan of cuBLASLt whatever the strides";
}

TEST_F(PlanTest, ABatchBeyondItsBoundsIsNamed) {
  for (const int64_t batch : {int64_t{0}, int64_t{-1}, int64_t{65536}}) {
    spec_.batch = batch;
    EXPECT_THAT(Refusal(), HasSubstr("batch_count is " + std::to_string(batch) +
                                     ", but must be from 1 to 65535"));
  }
}

TEST_F(PlanTest, MatricesThatDoNotFitTheBatchAreNamed) {
  spec_.batch = 3;
  shapes_[Role::kA] = Shape{10, 5, kF32};
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("a is 10x5 f32 row-major"), HasSubstr("batch_count 3"),
                               HasSubstr("10 rows must be a multiple")));
  shapes_[Role::kA] = Shape{5, 10, kF32, /*column_major=*/true};
  EXPECT_THAT(Refusal(), HasSubstr("10 columns must be a multiple"));
  shapes_[Role::kA] = Shape{9, 5, kF32};
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("b is 5x4"), HasSubstr("shared_operands")));
  shapes_[Role::kB] = Shape{15, 4, kF32};

  spec_.beta = 1;
  shapes_[Role::kC] = Shape{3, 4, kF32};
  EXPECT_THAT(Refusal(), HasSubstr("c is 3x4 f32 row-major, but must be as the result: 9x4"));
  spec_.shared[Role::kC] = true;
  shapes_[Role::kC] = Shape{9, 4, kF32};
  EXPECT_THAT(Refusal(), HasSubstr("as the result of each product: 3x4"));
  shapes_[Role::kC] = Shape{3, 4, kF32};

  for (const Shape& wrong : {Shape{1, 4, kF32}, Shape{3, 5, kF32}, Shape{9, 4, kF32}}) {
    shapes_[Role::kBias] = wrong;
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("bias is " + ToString(wrong)), HasSubstr("3x4 f32"),
                                 HasSubstr("a row for each product")));
  }
  shapes_[Role::kBias] = Shape{3, 4, kF32, /*column_major=*/true};
  EXPECT_THAT(Refusal(), HasSubstr("row-major"));
  spec_.shared[Role::kBias] = true;
  EXPECT_THAT(Refusal(), HasSubstr("1x4 f32"));
  shapes_[Role::kBias].reset();
  EXPECT_THAT(Refusal(), HasSubstr("shared_operands names bias, but the product has no bias"));
}

// As many columns as products: its lines are as many in either order.
TEST_F(PlanTest, AColumnMajorSquareBiasOfABatchIsRefused) {
  spec_.batch = 4;
  shapes_[Role::kA] = Shape{12, 5, kF32};
  shapes_[Role::kB] = Shape{20, 4, kF32};
  shapes_[Role::kBias] = Shape{4, 4, kF32};
  EXPECT_EQ(Make().problem.batch, 4);
  shapes_[Role::kBias] = Shape{4, 4, kF32, /*column_major=*/true};
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("bias is 4x4"), HasSubstr("row-major")));
}

TEST_F(PlanTest, ABatchSharesAtMostOneFactor) {
  spec_.batch = 3;
  spec_.shared = {true, true, false, false};
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("shared_operands names a and b"), HasSubstr("batch_count 3")));
}

TEST_F(PlanTest, ABatchWhoseResultIsTooLargeIsRefused) {
  spec_.batch = gemm::kMaxBatch;
  spec_.shared = {true, true, false, false};
  // Each: 2^58 bytes. All: more. And more lines than an int64 counts.
  for (const int64_t rows : {int64_t{1} << 54, int64_t{1} << 56}) {
    shapes_[Role::kA] = Shape{rows - 1, 1, kF32};
    shapes_[Role::kB] = Shape{1, 1, kF32};
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("the result"), HasSubstr("2^60")));
  }
}

TEST(BindOperands, WithoutCAndBiasThereAreNone) {
  const float data[1] = {};
  const gemm::Operands operands = BindOperands(Plan(), {{{data, 1}, {data, 2}}}, {data, 3});
  EXPECT_EQ(operands.c, nullptr);
  EXPECT_EQ(operands.bias, nullptr);
  EXPECT_EQ(operands.ldb, 2);
  EXPECT_EQ(operands.ldd, 3);
}

}  // namespace
}  // namespace gemmd
