// The request for a benchmark: shapes, types, kernels, and its time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/bench/measure/candidate.h"
#include "kernels/bench/measure/schedule.h"
#include "kernels/bench/spec/layout.h"
#include "kernels/bench/spec/selection.h"
#include "kernels/bench/spec/shape.h"
#include "tests/kernels/cuda_kernels.h"

namespace gemm::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr DeviceCaps kHost = {Target::kHost, 0};
constexpr DeviceCaps kHopper = {Target::kCuda, 90};

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(Suites, HaveTheShapesTheirNamesSay) {
  const auto shapes = [](absl::string_view name) { return FindSuite(name).value()->shapes; };
  EXPECT_EQ(shapes("sgemm-8").size(), 8u);
  EXPECT_EQ(shapes("hgemm-27").size(), 27u);
  EXPECT_EQ(shapes("hgemm-125").size(), 125u);
  EXPECT_EQ(shapes("triton-31").size(), 31u);
  EXPECT_EQ(shapes("skinny-72").size(), 72u);
  EXPECT_EQ(shapes("small-125").size(), 125u);
  EXPECT_EQ(shapes("hgemm-125").back(), (Shape{16384, 16384, 8192}));
  EXPECT_EQ(shapes("article").back(), (Shape{4096, 4096, 4096}));
  EXPECT_THAT(Message(FindSuite("sgemm").status()), HasSubstr("there are sgemm-8, hgemm-27"));
}

TEST(Suites, NameNoShapeTwice) {
  for (const Suite& suite : Suites()) {
    for (auto shape = suite.shapes.begin(); shape != suite.shapes.end(); ++shape) {
      EXPECT_EQ(std::count(suite.shapes.begin(), suite.shapes.end(), *shape), 1)
          << suite.name << " " << ShapeName(*shape);
    }
  }
}

TEST(ParseShapes, TakesProductsAndCubes) {
  EXPECT_THAT(ParseShapes("4096x2048x512, 7").value(),
              ElementsAre(Shape{4096, 2048, 512}, Shape{7, 7, 7}));
  for (const char* text : {"", "3x4", "3x4x0", "-1", "3x4x5x6", "8,"}) {
    EXPECT_EQ(ParseShapes(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_THAT(Message(ParseShapes("8,3x4").status()), HasSubstr("\"3x4\" is no shape"));
}

TEST(ParseScales, TakesAKindForEachOperand) {
  const Scales scales = ParseScales("lines:tiles").value();
  EXPECT_EQ(scales.a, ScaleBlocks::kLines);
  EXPECT_EQ(scales.b, ScaleBlocks::kTiles);
  for (const char* text : {"", "lines", "lines:", "tiles:none", "lines:tiles:lines"}) {
    EXPECT_EQ(ParseScales(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(SelectCandidates, WithScalesTheyTakeThemAndAreOfFp8) {
  const auto candidates = SelectCandidates({.with_scales = true}, kHost);
  ASSERT_TRUE(candidates.ok()) << candidates.status();
  EXPECT_EQ(candidates->size(), 2u);
  for (const Candidate& candidate : *candidates) {
    EXPECT_TRUE(candidate.kernel->block_scales);
    EXPECT_EQ(TypesName(candidate.types), "e4m3:e4m3:f16:f32");
  }
}

TEST(SelectCandidates, WithScalesOtherTypesAreRefused) {
  for (const char* types : {"f32", "e4m3,f16", "e4m3:f32"}) {
    const auto refused =
        SelectCandidates({.types = ParseTypesPatterns(types).value(), .with_scales = true}, kHost);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument) << types;
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("must be e4m3 or e5m2"));
  }
}

TEST(ParseTypesPatterns, LeavesOutWhatMayBeAnything) {
  const Types half = {DType::kF16, DType::kF16, DType::kF16, Compute::kF32};
  EXPECT_EQ(TypesName(half), "f16:f16:f16:f32");
  const auto matches = [&](absl::string_view text) {
    return ParseTypesPatterns(text).value().front().Matches(half);
  };
  EXPECT_TRUE(matches("f16"));
  EXPECT_TRUE(matches("*:f16"));
  EXPECT_TRUE(matches("*:*:*:f32"));
  EXPECT_TRUE(matches(TypesName(half)));
  EXPECT_FALSE(matches("f16:f16:f16:f16"));
  EXPECT_FALSE(matches("bf16"));
  for (const char* text : {"f17", "f16:f16:f16:bf16", "f16:f16:f16:f32:f32", ""}) {
    EXPECT_EQ(ParseTypesPatterns(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(GlobMatches, KnowsStarsAndQuestionMarks) {
  EXPECT_TRUE(GlobMatches("a*c", "abbc"));
  EXPECT_TRUE(GlobMatches("*stage?*", "x_stage3_dsmem"));
  EXPECT_TRUE(GlobMatches("*aab", "aaaab"));
  EXPECT_TRUE(GlobMatches("**", ""));
  EXPECT_FALSE(GlobMatches("a*c", "abcd"));
  EXPECT_FALSE(GlobMatches("?", ""));
  EXPECT_FALSE(GlobMatches("ab", "abc"));
}

TEST(SelectCandidates, TakesTheFirstTypesUnlessAsked) {
  const auto all = SelectCandidates({}, kHost).value();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].types, all[0].kernel->types.front());
  Selection f16;
  f16.types = ParseTypesPatterns("f16:f16:f16").value();
  EXPECT_EQ(SelectCandidates(f16, kHost).value().size(), 4u);
}

TEST(SelectCandidates, SaysWhatThereIsNot) {
  EXPECT_THAT(Message(SelectCandidates({.kernels = {"host_openblass"}}, kHost).status()),
              HasSubstr("nearest are host_openblas"));
  EXPECT_THAT(Message(SelectCandidates({.kernels = {"no*"}}, kHost).status()),
              HasSubstr("fits the pattern \"no*\""));
  EXPECT_THAT(Message(SelectCandidates({.families = {"hots"}}, kHost).status()),
              HasSubstr("no family is named \"hots\"; there are host"));
  EXPECT_THAT(Message(SelectCandidates({.kernels = {"host_reference"}}, kHopper).status()),
              HasSubstr("needs a host device"));
  Selection s32;
  s32.types = ParseTypesPatterns("s32").value();
  EXPECT_EQ(SelectCandidates(s32, kHost).status().code(), absl::StatusCode::kNotFound);
}

TEST(SelectCandidates, RefusesAParameterThatNoKernelHas) {
  const absl::Status status =
      SelectCandidates({.families = {"host"}, .params = {{"swizzel", {1}}}}, kHost).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status),
            "no kernel of the selection has a launch parameter \"swizzel\"; they have none");
}

TEST(FindBaseline, IsTheVendorsKernelOfTheseTypes) {
  const Types f32 = {DType::kF32, DType::kF32, DType::kF32, Compute::kF32};
  EXPECT_EQ(FindBaseline(f32, kHost)->name, "host_openblas");
  EXPECT_EQ(FindBaseline({DType::kS8, DType::kS8, DType::kS32, Compute::kF32}, kHost), nullptr);
  const Types integers = {DType::kS8, DType::kS8, DType::kS32, Compute::kS32};
  EXPECT_EQ(FindBaseline(integers, kHost)->name, "host_openblas");
}

using SelectCudaCandidates = gemm::testing::CudaKernels;

TEST_F(SelectCudaCandidates, TheBaselineIsTheVendors) {
  const Types f32 = {DType::kF32, DType::kF32, DType::kF32, Compute::kF32};
  EXPECT_EQ(FindBaseline(f32, kHopper)->name, "cublas_f32");
  const Types e4m3 = {DType::kE4M3, DType::kE4M3, DType::kF16, Compute::kF32};
  EXPECT_EQ(FindBaseline(e4m3, kHopper)->family, "cublaslt");
}

TEST_F(SelectCudaCandidates, MakesOneOfEachValueOfAParameter) {
  const Selection selection = {.kernels = {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage2"},
                               .params = {{"swizzle", {0, 1024}}}};
  const std::vector<Candidate> candidates = SelectCandidates(selection, kHopper).value();
  ASSERT_EQ(candidates.size(), 2u);
  EXPECT_EQ(ParamsText(candidates[0]), "swizzle=0");
  EXPECT_EQ(ParamsText(candidates[1]), "swizzle=1024");
  EXPECT_EQ(ParamsText(SelectCandidates({.kernels = selection.kernels}, kHopper).value()[0]),
            "swizzle=own");
  Selection wrong = selection;
  wrong.params["swizzle"] = {-7};
  EXPECT_THAT(Message(SelectCandidates(wrong, kHopper).status()), HasSubstr("swizzle"));
}

TEST_F(SelectCudaCandidates, ValuesAreOfTheKernelsThatHaveTheParameter) {
  Selection selection = {.kernels = {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage2", "cublas_f32"},
                         .params = {{"swizzle", {0, 1024}}}};
  EXPECT_EQ(SelectCandidates(selection, kHopper).value().size(), 3u);
  selection.params["swizzel"] = {1};
  EXPECT_THAT(Message(SelectCandidates(selection, kHopper).status()),
              HasSubstr("parameter \"swizzel\"; they have swizzle"));
}

TEST_F(SelectCudaCandidates, RefusesANamedKernelThatTheDeviceCannotRun) {
  const absl::Status named =
      SelectCandidates({.kernels = {"host_reference", "cublas_f32"}}, kHost).status();
  EXPECT_EQ(named.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(named), HasSubstr("cublas_f32 needs a CUDA device"));
  // Those that a pattern stands for are left out.
  EXPECT_EQ(SelectCandidates({.kernels = {"host_*", "cublas_*"}}, kHost).value().size(), 2u);
}

TEST_F(SelectCudaCandidates, NamesAndFamiliesMustHaveOneInCommon) {
  const absl::Status status =
      SelectKernels({.kernels = {"host_*", "cublas_f32"}, .families = {"simt"}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(status),
            "no kernel has both a name and a family that are asked for; those of the names are of "
            "cublas, host");
}

TEST_F(SelectCudaCandidates, NativeLayoutOfRowsNamedForItHasBTransposed) {
  const Selection selection = {.kernels = {"hgemm_mma_m16n8k16_mma2x4_warp4x4_stage2_tn"}};
  EXPECT_EQ(LayoutName(SelectCandidates(selection, kHopper).value()[0].layout), "nt");
}

TEST(NativeLayout, IsTheOneWithoutATranspose) {
  const std::vector<Candidate> candidates = SelectCandidates({}, kHost).value();
  for (const Candidate& candidate : candidates) {
    EXPECT_EQ(LayoutName(candidate.layout), "nn");
  }
  EXPECT_EQ(LayoutName(ParseLayout("nt").value()), "nt");
  EXPECT_TRUE(ParseLayout("nt")->trans_b);
  EXPECT_FALSE(ParseLayout("n").ok());
}

TEST(Schedule, SharesWhatIsLeftByWeight) {
  absl::Time now = absl::UnixEpoch();
  const Schedule schedule(absl::Seconds(100), {1, 3}, [&] { return now; });
  EXPECT_EQ(schedule.Deadline(0), now + absl::Seconds(25));
  EXPECT_EQ(schedule.TimeLeft(0), absl::Seconds(100));
  now += absl::Seconds(10);  // faster than its share: the rest has more
  EXPECT_EQ(schedule.Deadline(1), now + absl::Seconds(90));
  EXPECT_EQ(schedule.TimeLeft(1), absl::Seconds(30));
  now += absl::Seconds(95);
  EXPECT_EQ(schedule.Deadline(1), now);
  EXPECT_EQ(schedule.TimeLeft(1), absl::ZeroDuration());
  EXPECT_LT(schedule.End(), now);
}

TEST(Schedule, WithoutABudgetHasNoDeadline) {
  absl::Time now = absl::UnixEpoch();
  const Schedule schedule(absl::InfiniteDuration(), {1, 1}, [&] { return now; });
  EXPECT_EQ(schedule.Deadline(0), absl::InfiniteFuture());
  EXPECT_EQ(schedule.End(), absl::InfiniteFuture());
  EXPECT_EQ(schedule.TimeLeft(0), absl::InfiniteDuration());
}

}  // namespace
}  // namespace gemm::bench
