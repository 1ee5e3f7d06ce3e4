// Groups: products that differ in one dimension, in every order that their matrices may have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "server/engine/job/plan.h"
#include "tests/engine/planned_product.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr gemm::DType kGroupType = gemm::DType::kF32;

void Share(JobSpec& spec, Role role) { spec.shared[role] = true; }

// The matrix of one product, and those of a group in the lines of one.
Shape MatrixOf(int64_t rows, int64_t cols, bool turned, bool columns) {
  return turned ? Shape{cols, rows, kGroupType, columns} : Shape{rows, cols, kGroupType, columns};
}

struct Matrices {
  Shape a, b, d;
};

Matrices MatricesOf(const PlanOrder& order, const ProductSize& size) {
  return {MatrixOf(size.m, size.k, order.transpose_a, order.a_columns),
          MatrixOf(size.k, size.n, order.transpose_b, order.b_columns),
          MatrixOf(size.m, size.n, false, order.d_columns)};
}

// Nullopt where their lines are of several lengths.
std::optional<Shape> Stacked(const std::vector<ProductSize>& group, const PlanOrder& order,
                             Shape Matrices::*which) {
  std::optional<Shape> all;
  for (const ProductSize& size : group) {
    const Shape one = MatricesOf(order, size).*which;
    if (!all.has_value()) {
      all = one;
    } else if (all->line_elements() != one.line_elements()) {
      return std::nullopt;
    } else {
      (all->column_major ? all->cols : all->rows) += one.lines();
    }
  }
  return all;
}

// In each of the orders, by their bits.
class GroupOrders : public ::testing::TestWithParam<int> {
 protected:
  // Plans the group and computes it, or says why it cannot be.
  absl::Status Compute(const std::vector<ProductSize>& group) {
    const PlanOrder order = PlanOrder::Of(GetParam());
    const auto shape_a = Stacked(group, order, &Matrices::a);
    const auto shape_b = Stacked(group, order, &Matrices::b);
    const auto shape_d = Stacked(group, order, &Matrices::d);
    // Any matrix that does not stack.
    shapes_[Role::kA] = shape_a.value_or(MatricesOf(order, group[0]).a);
    shapes_[Role::kB] = shape_b.value_or(MatricesOf(order, group[0]).b);
    const Shape result = shape_d.value_or(MatricesOf(order, group[0]).d);
    shapes_[Role::kC] = result;
    // Products side by side share a row of the bias; else there is a row for each.
    const bool one_n =
        !by_n() && std::all_of(group.begin(), group.end(),
                               [&](const ProductSize& size) { return size.n == group[0].n; });
    int64_t columns = group[0].n;
    if (!one_n) {
      columns = 0;
      for (const ProductSize& size : group) columns += size.n;
    }
    shapes_[Role::kBias] =
        Shape{one_n ? static_cast<int64_t>(group.size()) : 1, columns, kGroupType};

    spec_.group = group;
    spec_.transpose_a = order.transpose_a;
    spec_.transpose_b = order.transpose_b;
    spec_.output_column_major = order.d_columns;
    spec_.beta = 7;
    const absl::StatusOr<Plan> plan = MakePlan(spec_, shapes_);
    if (!plan.ok()) return plan.status();
    EXPECT_TRUE(shape_a.has_value() && shape_b.has_value() && shape_d.has_value());
    EXPECT_EQ(plan->result, result);
    a_ = Fill(*shapes_[Role::kA], 1);
    b_ = Fill(*shapes_[Role::kB], 2);
    c_ = Fill(result, 3);
    bias_ = Fill(*shapes_[Role::kBias], 4);
    d_ = Fill(result, -1000);
    // A copy: the problem refers to the plan's memory.
    const Plan copy = *plan;
    const gemm::Operands operands =
        BindOperands(copy, {a_.memory(), b_.memory(), c_.memory(), bias_.memory()}, d_.memory());
    int64_t first = 0;
    for (size_t i = 0; i < group.size(); ++i) {
      const gemm::OneProduct one =
          gemm::ProductOfGroup(copy.problem, operands, static_cast<int64_t>(i), first);
      Multiply(one.problem, one.operands);
      first += copy.problem.extents[i];
    }
    return absl::OkStatus();
  }

  // Expects that each product has read and written its own part.
  void ExpectProducts(const std::vector<ProductSize>& group) {
    const PlanOrder order = PlanOrder::Of(GetParam());
    const bool one_n = bias_.shape.rows == static_cast<int64_t>(group.size());
    size_t at_a = 0, at_b = 0, at_d = 0;
    int64_t at_n = 0;
    for (size_t p = 0; p < group.size(); ++p) {
      const ProductSize& size = group[p];
      const Matrices one = MatricesOf(order, size);
      const auto element = [](const Stored& all, size_t from, const Shape& part, int64_t row,
                              int64_t col) {
        return all
            .values[from + (part.column_major ? col * part.rows + row : row * part.cols + col)];
      };
      for (int64_t i = 0; i < size.m; ++i) {
        for (int64_t j = 0; j < size.n; ++j) {
          float want = one_n ? bias_.at(static_cast<int64_t>(p), j) : bias_.at(0, at_n + j);
          want += 7 * element(c_, at_d, one.d, i, j);
          for (int64_t l = 0; l < size.k; ++l) {
            want += (order.transpose_a ? element(a_, at_a, one.a, l, i)
                                       : element(a_, at_a, one.a, i, l)) *
                    (order.transpose_b ? element(b_, at_b, one.b, j, l)
                                       : element(b_, at_b, one.b, l, j));
          }
          ASSERT_EQ(element(d_, at_d, one.d, i, j), want) << p << ": " << i << ", " << j;
        }
      }
      at_a += static_cast<size_t>(one.a.rows * one.a.cols);
      at_b += static_cast<size_t>(one.b.rows * one.b.cols);
      at_d += static_cast<size_t>(one.d.rows * one.d.cols);
      at_n += size.n;
    }
  }

  // As the contract says: what has the dimension has it as its lines.
  void Expect(const std::vector<ProductSize>& group, bool fits) {
    const absl::Status status = Compute(group);
    EXPECT_EQ(status.ok(), fits) << status;
    if (fits && status.ok()) ExpectProducts(group);
    if (!fits) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    }
  }

  bool LinesOfAAreK() const {
    const PlanOrder order = PlanOrder::Of(GetParam());
    return order.transpose_a != order.a_columns;
  }
  bool LinesOfBAreN() const {
    const PlanOrder order = PlanOrder::Of(GetParam());
    return order.transpose_b != order.b_columns;
  }
  bool by_m() const { return !LinesOfAAreK() && !PlanOrder::Of(GetParam()).d_columns; }
  bool by_n() const { return LinesOfBAreN() && PlanOrder::Of(GetParam()).d_columns; }
  bool by_k() const { return LinesOfAAreK() && !LinesOfBAreN(); }

  JobSpec spec_;
  OperandShapes shapes_;
  Stored a_, b_, c_, bias_, d_;
};

TEST_P(GroupOrders, ByM) {
  Expect({{0, 4, 5}, {3, 4, 5}, {3, 4, 5}, {0, 4, 5}, {1, 4, 5}, {7, 4, 5}, {0, 4, 5}}, by_m());
}

TEST_P(GroupOrders, ByN) { Expect({{3, 2, 5}, {3, 0, 5}, {3, 6, 5}, {3, 6, 5}}, by_n()); }

TEST_P(GroupOrders, ByK) { Expect({{3, 4, 0}, {3, 4, 2}, {3, 4, 0}, {3, 4, 9}}, by_k()); }

TEST_P(GroupOrders, OfOneSizeInTheOneThatFits) {
  Expect(std::vector<ProductSize>(3, {3, 4, 5}), by_m() || by_n() || by_k());
}

TEST_P(GroupOrders, OfOneProduct) { Expect({{3, 4, 5}}, by_m() || by_n() || by_k()); }

INSTANTIATE_TEST_SUITE_P(All, GroupOrders, ::testing::Range(0, PlanOrder::kCount));

// Three products of 4 columns and 5 of k, row-major.
class GroupPlanTest : public ::testing::Test {
 protected:
  GroupPlanTest() {
    spec_.group = {{2, 4, 5}, {0, 4, 5}, {6, 4, 5}};
    shapes_[Role::kA] = Shape{8, 5, kGroupType};
    shapes_[Role::kB] = Shape{15, 4, kGroupType};
  }

  Plan Make() {
    absl::StatusOr<Plan> plan = MakePlan(spec_, shapes_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *plan : Plan();
  }
  std::string Refusal() {
    const absl::StatusOr<Plan> plan = MakePlan(spec_, shapes_);
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument) << plan.status();
    return std::string(plan.status().message());
  }

  JobSpec spec_;
  OperandShapes shapes_;
};

TEST_F(GroupPlanTest, TheCallerSeesTheSum) {
  const Plan plan = Make();
  EXPECT_EQ(plan.m, 8);
  EXPECT_EQ(plan.n, 4);
  EXPECT_EQ(plan.k, 5);
  EXPECT_EQ(plan.products(), 3);
  EXPECT_EQ(plan.problem.batch, 1);
  EXPECT_EQ(gemm::Flops(plan.problem), 2.0 * 8 * 4 * 5);
  EXPECT_EQ(plan.problem.grouped, gemm::GroupedBy::kM);
  EXPECT_THAT(plan.problem.extents, ::testing::ElementsAre(2, 0, 6));
}

TEST_F(GroupPlanTest, SharedMatricesHaveNoStride) {
  Share(spec_, Role::kB);
  Share(spec_, Role::kBias);
  shapes_[Role::kB] = Shape{5, 4, kGroupType};
  shapes_[Role::kBias] = Shape{1, 4, kGroupType};
  const float data[1] = {};
  const gemm::Operands shared =
      BindOperands(Make(), {{{data, 5}, {data, 4}, {}, {data}}}, {data, 4});
  EXPECT_EQ(shared.stride_b, 0);
  EXPECT_EQ(shared.stride_bias, 0);
  spec_.shared = {};
  shapes_[Role::kB] = Shape{15, 4, kGroupType};
  shapes_[Role::kBias] = Shape{3, 4, kGroupType};
  const gemm::Operands own = BindOperands(Make(), {{{data, 5}, {data, 4}, {}, {data}}}, {data, 4});
  EXPECT_EQ(own.stride_b, 20);
  EXPECT_EQ(own.stride_bias, 4);
  EXPECT_EQ(own.stride_a, 0);
  EXPECT_EQ(own.stride_d, 0);
}

TEST_F(GroupPlanTest, ByKAllMayShareC) {
  spec_.group = {{3, 4, 1}, {3, 4, 7}};
  spec_.transpose_a = true;
  spec_.beta = 1;
  shapes_[Role::kA] = Shape{8, 3, kGroupType};
  shapes_[Role::kB] = Shape{8, 4, kGroupType};
  shapes_[Role::kC] = Shape{3, 4, kGroupType};
  EXPECT_THAT(Refusal(), HasSubstr("c is 3x4 f32 row-major, but must be as the result: 6x4"));
  Share(spec_, Role::kC);
  const Plan plan = Make();
  EXPECT_EQ(plan.result, (Shape{6, 4, kGroupType}));
  const float data[1] = {};
  const gemm::Operands operands =
      BindOperands(plan, {{{data, 3}, {data, 4}, {data, 4}}}, {data, 4});
  EXPECT_EQ(operands.stride_c, 0);
  EXPECT_EQ(operands.stride_d, 12);
}

TEST_F(GroupPlanTest, OfOneSizeByNTheBiasIsOneRow) {
  spec_.group.assign(3, {2, 4, 5});
  spec_.output_column_major = true;
  shapes_[Role::kA] = Shape{6, 5, kGroupType};
  shapes_[Role::kB] = Shape{5, 12, kGroupType, /*column_major=*/true};
  shapes_[Role::kBias] = Shape{3, 4, kGroupType};
  EXPECT_THAT(Refusal(), HasSubstr("bias is 3x4 f32 row-major, but must be 1x12 f32"));
  shapes_[Role::kBias] = Shape{1, 12, kGroupType};
  const Plan plan = Make();
  EXPECT_EQ(plan.n, 12);
  const float data[1] = {};
  EXPECT_EQ(BindOperands(plan, {{{data, 5}, {data, 5}, {}, {data}}}, {data, 2}).stride_bias, 0);
}

TEST_F(GroupPlanTest, SizesBeyondTheirBoundsAreNamed) {
  spec_.group[1].m = -1;
  EXPECT_THAT(Refusal(), HasSubstr("group[1].m is -1, but must be from 0 to 281474976710656"));
  spec_.group[1] = {0, 4, (int64_t{1} << 48) + 1};
  EXPECT_THAT(Refusal(), HasSubstr("group[1].k is 281474976710657"));
  spec_.group.assign(4097, {1, 4, 5});
  EXPECT_THAT(Refusal(), HasSubstr("group has 4097 products, but may have at most 4096"));
}

TEST_F(GroupPlanTest, SumsThatNoMatrixHoldsAreRefused) {
  spec_.group.assign(4096, {int64_t{1} << 48, 4, 5});
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("a is 8x5"), HasSubstr("1152921504606846976x5")));
  // All matrices fit but the result.
  spec_.group.assign(1, {int64_t{1} << 48, int64_t{1} << 48, 1});
  shapes_[Role::kA] = Shape{int64_t{1} << 48, 1, kGroupType};
  shapes_[Role::kB] = Shape{1, int64_t{1} << 48, kGroupType};
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("the result"), HasSubstr("2^60")));
}

TEST_F(GroupPlanTest, TwoDimensionsThatDifferAreNamed) {
  spec_.group = {{2, 4, 5}, {3, 4, 5}, {2, 4, 6}};
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("group[0] is 2x4x5"), HasSubstr("group[1]"),
                               HasSubstr("in m (3x4x5)"), HasSubstr("group[2] in k (2x4x6)"),
                               HasSubstr("may differ in one dimension")));
}

TEST_F(GroupPlanTest, LinesOfSeveralLengthsAreNamedWithARemedy) {
  shapes_[Role::kA] = Shape{8, 5, kGroupType, /*column_major=*/true};
  EXPECT_THAT(
      Refusal(),
      AllOf(HasSubstr("a is column-major, so that its columns would have 2 elements for "
                      "group[0] and 0 for group[1]"),
            HasSubstr("row-major or as its transpose with transpose_a"), HasSubstr("one by one")));
  shapes_[Role::kA] = Shape{8, 5, kGroupType};
  spec_.output_column_major = true;
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("the result is column-major"), HasSubstr("other output_layout")));
  spec_.output_column_major = false;
  spec_.group = {{2, 4, 5}, {2, 6, 5}};
  EXPECT_THAT(Refusal(), HasSubstr("b is row-major, so that its rows would have 4 elements for "
                                   "group[0] and 6 for group[1]"));
}

TEST_F(GroupPlanTest, OfOneSizeOrdersWithoutACommonDimensionAreNamed) {
  spec_.group.assign(2, {2, 4, 5});
  spec_.transpose_a = true;
  spec_.transpose_b = true;
  shapes_[Role::kA] = Shape{10, 2, kGroupType};
  shapes_[Role::kB] = Shape{8, 5, kGroupType};
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("the lines of a are its k, those of b its n and those of "
                                         "the result its m"),
                               HasSubstr("batch_count")));
}

TEST_F(GroupPlanTest, MatricesThatDoNotFitAreNamed) {
  shapes_[Role::kA] = Shape{9, 5, kGroupType};
  EXPECT_THAT(Refusal(), HasSubstr("a is 9x5 f32 row-major, but must be 8x5: its rows are the m "
                                   "of all 3 products of the group"));
  shapes_[Role::kA] = Shape{8, 5, kGroupType};
  shapes_[Role::kB] = Shape{5, 4, kGroupType};
  EXPECT_THAT(Refusal(), HasSubstr("b is 5x4 f32 row-major, but must be 15x4: one matrix for each "
                                   "of the 3 products of the group, unless shared_operands"));
  Share(spec_, Role::kB);
  Make();
  shapes_[Role::kB] = Shape{15, 4, kGroupType};
  EXPECT_THAT(Refusal(), HasSubstr("must be 5x4: shared by the products of the group"));
  shapes_[Role::kB] = Shape{5, 4, kGroupType};
  shapes_[Role::kBias] = Shape{1, 4, kGroupType};
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("bias is 1x4"), HasSubstr("3x4 f32"),
                               HasSubstr("a row for each product")));
}

TEST_F(GroupPlanTest, WhatIsStackedIsNotShared) {
  Share(spec_, Role::kA);
  EXPECT_THAT(Refusal(), HasSubstr("shared_operands names a, but a has the m in which the products "
                                   "of the group are stacked"));
  spec_.group = {{3, 4, 1}, {3, 4, 7}};
  spec_.transpose_a = true;
  shapes_[Role::kA] = Shape{8, 3, kGroupType};
  shapes_[Role::kB] = Shape{8, 4, kGroupType};
  EXPECT_THAT(Refusal(), HasSubstr("shared_operands names a, but a has the k in which"));
}

TEST_F(GroupPlanTest, OfOneProductNothingIsShared) {
  Share(spec_, Role::kA);
  spec_.group = {{8, 4, 5}};
  shapes_[Role::kB] = Shape{5, 4, kGroupType};
  EXPECT_FALSE(Make().Shares(Role::kA));
}

TEST_F(GroupPlanTest, NothingToComputeIsRefused) {
  spec_.group.assign(3, {0, 4, 5});
  EXPECT_THAT(Refusal(), HasSubstr("the m of all products of the group is 0"));
  spec_.group = {{1, 4, 0}, {2, 4, 0}};
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("the k of the group's products is 0"),
                               HasSubstr("only their m, in which they are stacked, may be 0")));
}

}  // namespace
}  // namespace gemmd
