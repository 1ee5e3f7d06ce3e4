// Which kernel is the fastest by several rounds of measurements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "client/ctl/tune/tune_options.h"
#include "kernels/bench/result/tuning_rounds.h"

namespace gemmd::ctl {
namespace {

using gemm::bench::TuningRounds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

gemm::bench::Row Timed(const std::string& kernel, double seconds, const std::string& params = "") {
  return {.shape = {64, 32, 16},
          .types = {gemm::DType::kF32, gemm::DType::kF32, gemm::DType::kF32, gemm::Compute::kF32},
          .layout = {.trans_b = true},
          .kernel = kernel,
          .params = params,
          .measured = true,
          .seconds = seconds};
}

TEST(TuningRounds, TheLowestMedianOfAllRoundsWins) {
  TuningRounds rounds;
  // "lucky" is the fastest once.
  for (const auto& [lucky, steady] : {std::pair(1.0, 3.0), {9.0, 3.5}, {8.0, 4.0}}) {
    rounds.Add(Timed("lucky", lucky));
    rounds.Add(Timed("steady", steady));
    rounds.EndRound();
  }
  const TuningRounds::Best best = rounds.Fastest();
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best[0].second, (gemm::TunedChoice{"steady", {}, 3.5}));
  EXPECT_EQ(best[0].first.m, 64);
  EXPECT_EQ(best[0].first.n, 32);
  EXPECT_EQ(best[0].first.k, 16);
  EXPECT_FALSE(best[0].first.trans_a);
  EXPECT_TRUE(best[0].first.trans_b);
}

TEST(TuningRounds, EachValueOfAParameterIsACandidate) {
  TuningRounds rounds;
  rounds.Add(Timed("lt", 3, "algorithm=0"));
  rounds.Add(Timed("lt", 2, "algorithm=5"));
  rounds.Add(Timed("own", 4, "swizzle=own"));
  rounds.EndRound();
  EXPECT_THAT(rounds.Fastest()[0].second.params, ElementsAre(Pair("algorithm", 5)));
}

TEST(TuningRounds, WhatIsWrongABaselineOrNotInEveryRoundDoesNotCount) {
  TuningRounds rounds;
  gemm::bench::Row wrong = Timed("wrong", 0.1), baseline = Timed("baseline", 0.2),
                   unmeasured = Timed("unmeasured", 0.3);
  wrong.error.of_bound = 2;
  baseline.baseline = true;
  unmeasured.measured = false;
  rounds.Add(Timed("wrong", 0.1));
  for (const auto& row : {wrong, baseline, unmeasured, Timed("slow", 5), Timed("once", 1)}) {
    rounds.Add(row);
  }
  rounds.EndRound();
  rounds.Add(Timed("slow", 5));
  rounds.EndRound();
  ASSERT_EQ(rounds.Fastest().size(), 1u);
  EXPECT_EQ(rounds.Fastest()[0].second.kernel, "slow");
  EXPECT_THAT(rounds.wrong(), ElementsAre("wrong"));
  EXPECT_THAT(rounds.Finalists(1000), ElementsAre("once", "slow"));
}

TEST(TuningRounds, KnowsTheSecondsOfAKernelWithItsParameters) {
  TuningRounds rounds;
  rounds.Add(Timed("lt", 3, "algorithm=5 swizzle=own"));
  rounds.Add(Timed("lt", 2, "algorithm=5 swizzle=own"));
  rounds.Add(Timed("lt", 9, "algorithm=0 swizzle=own"));
  const auto product = gemm::TunedProduct::Of({.m = 64, .n = 32, .k = 16, .trans_b = true});
  EXPECT_EQ(rounds.SecondsOf(product, "lt", {{"algorithm", 5}}), 2.5);
  EXPECT_EQ(rounds.SecondsOf(product, "lt", {}), std::nullopt);
  EXPECT_EQ(rounds.SecondsOf(product, "other", {{"algorithm", 5}}), std::nullopt);
}

TEST(TuningRounds, FinalistsAreNearTheFastest) {
  TuningRounds rounds;
  EXPECT_THAT(rounds.Finalists(1.25), IsEmpty());
  rounds.Add(Timed("best", 4));
  rounds.Add(Timed("near", 5));
  rounds.Add(Timed("far", 5.1));
  EXPECT_THAT(rounds.Finalists(1.25), ElementsAre("best", "near"));
}

TEST(ParamsOf, LeavesTheKernelsOwnChoiceOut) {
  EXPECT_THAT(gemm::bench::ParamsOf(""), IsEmpty());
  EXPECT_THAT(gemm::bench::ParamsOf("group_m=8 swizzle=own"), ElementsAre(Pair("group_m", 8)));
}

TEST(ParseShapesText, TakesShapesAndComments) {
  const auto shapes = ParseShapesText("# a model\n64x32x16, 8\n\n 4x4x4 # small\r\n");
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_THAT(*shapes, ElementsAre(gemm::bench::Shape{64, 32, 16}, gemm::bench::Shape{8, 8, 8},
                                   gemm::bench::Shape{4, 4, 4}));
  const auto wrong = ParseShapesText("8\n8x8\n");
  EXPECT_TRUE(absl::IsInvalidArgument(wrong.status()));
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("line 2: \"8x8\" is no shape"));
  EXPECT_TRUE(absl::IsInvalidArgument(ParseShapesText("# none\n").status()));
}

}  // namespace
}  // namespace gemmd::ctl
