// Block scales in a plan: each element meets its own, and wrong ones are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "server/engine/job/plan.h"
#include "tests/engine/planned_product.h"

namespace gemmd {
namespace {

using gemm::ScaleBlocks;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr gemm::DType kFp8 = gemm::DType::kE4M3, kScale = gemm::DType::kF32;
constexpr int64_t kM = 300, kN = 130, kK = 257;

int64_t Blocks(int64_t elements) { return (elements + 127) / 128; }

// The operands' shapes of a product with scales of these kinds.
OperandShapes Shapes(const PlanOrder& order, bool tiles_a, bool tiles_b, bool columns) {
  OperandShapes shapes;
  shapes[Role::kA] = order.transpose_a ? Shape{kK, kM, kFp8, order.a_columns}
                                       : Shape{kM, kK, kFp8, order.a_columns};
  shapes[Role::kB] = order.transpose_b ? Shape{kN, kK, kFp8, order.b_columns}
                                       : Shape{kK, kN, kFp8, order.b_columns};
  shapes[Role::kScalesA] = Shape{tiles_a ? Blocks(kM) : kM, Blocks(kK), kScale, columns};
  shapes[Role::kScalesB] = Shape{Blocks(kK), tiles_b ? Blocks(kN) : kN, kScale, columns};
  return shapes;
}

JobSpec SpecOf(const PlanOrder& order) {
  JobSpec spec;
  spec.transpose_a = order.transpose_a;
  spec.transpose_b = order.transpose_b;
  spec.output_column_major = order.d_columns;
  return spec;
}

class ScalesOrders : public ::testing::TestWithParam<int> {};

// Whatever the orders: row i of the caller's op(A) meets the scale in row i, or i / 128, of
// scales_a, and so on.
TEST_P(ScalesOrders, EachBlockHasItsScale) {
  const PlanOrder order = PlanOrder::Of(GetParam());
  for (int kinds = 0; kinds < 8; ++kinds) {
    const bool tiles_a = (kinds & 1) != 0, tiles_b = (kinds & 2) != 0, columns = (kinds & 4) != 0;
    const OperandShapes shapes = Shapes(order, tiles_a, tiles_b, columns);
    const absl::StatusOr<Plan> plan = MakePlan(SpecOf(order), shapes);
    ASSERT_TRUE(plan.ok()) << plan.status();
    Stored of_a = Fill(*shapes[Role::kScalesA], 1), of_b = Fill(*shapes[Role::kScalesB], 2);
    const float nothing[1] = {};
    const gemm::Operands operands = BindOperands(
        *plan, {{{nothing, 1}, {nothing, 1}, {}, {}, of_a.memory(), of_b.memory()}}, {nothing, 1});
    const gemm::Problem& p = plan->problem;
    // The kernel's A is the caller's B where the result is column-major.
    const bool swapped = order.d_columns;
    for (int64_t block = 0; block < Blocks(kK); ++block) {
      for (int64_t i = 0; i < kM; ++i) {
        const double got = swapped ? ScaleOf(p.scales_b, operands.scales_b, i, block)
                                   : ScaleOf(p.scales_a, operands.scales_a, i, block);
        ASSERT_EQ(got, of_a.at(tiles_a ? i / 128 : i, block)) << i << " " << block;
      }
      for (int64_t j = 0; j < kN; ++j) {
        const double got = swapped ? ScaleOf(p.scales_a, operands.scales_a, j, block)
                                   : ScaleOf(p.scales_b, operands.scales_b, j, block);
        ASSERT_EQ(got, of_b.at(block, tiles_b ? j / 128 : j)) << j << " " << block;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, ScalesOrders, ::testing::Range(0, PlanOrder::kCount));

TEST(PlanScales, WithoutScalesThereAreNone) {
  OperandShapes shapes = Shapes({}, false, false, false);
  shapes[Role::kScalesA].reset();
  shapes[Role::kScalesB].reset();
  const absl::StatusOr<Plan> plan = MakePlan({}, shapes);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(gemm::HasBlockScales(plan->problem));
}

struct Bad {
  std::string name;
  std::function<void(JobSpec&, OperandShapes&)> change;
  std::vector<std::string> sentence;
};

TEST(PlanScales, WhatDoesNotFitIsNamed) {
  const Bad bads[] = {
      {"one alone",
       [](JobSpec&, OperandShapes& s) { s[Role::kScalesB].reset(); },
       {"scales_a is given without scales_b", "send both"}},
      {"the other alone",
       [](JobSpec&, OperandShapes& s) { s[Role::kScalesA].reset(); },
       {"scales_b is given without scales_a"}},
      {"no fp8",
       [](JobSpec&, OperandShapes& s) { s[Role::kB]->type = gemm::DType::kF16; },
       {"b is f16", "e4m3 or e5m2"}},
      {"a row too many",
       [](JobSpec&, OperandShapes& s) { s[Role::kScalesA]->rows = kM + 1; },
       {"scales_a is 301x3", "300x3 f32, one for each 1x128 block of op(a)", "300x257",
        "3x3 f32, one for each 128x128 block"}},
      {"a block too few",
       [](JobSpec&, OperandShapes& s) { s[Role::kScalesB]->rows = 2; },
       {"scales_b is 2x130", "3x130 f32, one for each 128x1 block of op(b)", "257x130",
        "3x2 f32, one for each 128x128 block"}},
      {"another type",
       [](JobSpec&, OperandShapes& s) { s[Role::kScalesA]->type = gemm::DType::kF16; },
       {"scales_a is 300x3 f16", "300x3 f32"}},
  };
  for (const Bad& bad : bads) {
    JobSpec spec;
    OperandShapes shapes = Shapes({}, false, false, false);
    bad.change(spec, shapes);
    const absl::Status status = MakePlan(spec, shapes).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad.name;
    for (const std::string& part : bad.sentence) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(part)) << bad.name;
    }
  }
}

}  // namespace
}  // namespace gemmd
