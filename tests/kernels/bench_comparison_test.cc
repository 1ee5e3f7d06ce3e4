// How kernels are measured, on a device whose clock the test owns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gemm/catalogue.h"
#include "gemm/run.h"
#include "kernels/bench/backend/backend.h"
#include "kernels/bench/measure/benchmark.h"
#include "kernels/bench/measure/comparison.h"
#include "tests/kernels/bench_fakes.h"

namespace gemm::bench {
namespace {

using testing::ComparisonTest;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::Fast;
using ::testing::HasSubstr;
using testing::KernelOf;
using testing::kF32;
using testing::kFast;
using testing::kRefusing;
using testing::kSlow;
using testing::kVerySlow;
using testing::launched;
using testing::now;
using testing::Product;
using testing::Take;

// Like a library that loads its code when it is first called.
absl::Status Loading(const Launch& launch) {
  const bool loaded = std::count(launched.begin(), launched.end(), "loading") > 0;
  return loaded ? Take<1000>("loading", launch) : Take<400000>("loading", launch);
}
absl::Status Instant(const Launch& launch) { return Take<5>("instant", launch); }
absl::Status Short(const Launch& launch) { return Take<500>("short", launch); }
absl::Status Idle(const Launch&) {
  now += absl::Milliseconds(1);
  return absl::OkStatus();
}
// An error that the bound of drawn elements allows.
absl::Status Inexact(const Launch& launch) {
  const absl::Status status = Take<1000>("inexact", launch);
  *static_cast<float*>(launch.operands.d) += 1e-5f;
  return status;
}
// Leaves the last element out.
absl::Status Incomplete(const Launch& launch) {
  const Problem& p = launch.problem;
  auto* const last =
      static_cast<float*>(launch.operands.d) + (p.m - 1) * launch.operands.ldd + p.n - 1;
  const float before = *last;
  const absl::Status status = Take<1000>("incomplete", launch);
  *last = before;
  return status;
}

const Kernel kLoading = KernelOf("loading", Loading), kInstant = KernelOf("instant", Instant),
             kShort = KernelOf("short", Short), kIncomplete = KernelOf("incomplete", Incomplete),
             kIdle = KernelOf("idle", Idle), kInexact = KernelOf("inexact", Inexact);

// Bytes of scratch.
constexpr size_t kGreed = size_t{6} << 20;

TEST_F(ComparisonTest, MeasuresAndRanks) {
  Add(kSlow);
  Add(kFast);
  ASSERT_EQ(Run(), absl::OkStatus());
  ASSERT_EQ(rows_.size(), 2u);
  EXPECT_NEAR(rows_[0].seconds, 2e-3, 1e-9);
  EXPECT_NEAR(rows_[1].seconds, 1e-3, 1e-9);
  EXPECT_EQ(rows_[1].iterations, 4);
  EXPECT_NEAR(rows_[1].tflops, 2.0 * 33 * 17 * 5 / 1e-3 * 1e-12, 1e-15);
  EXPECT_NEAR(*rows_[0].gain, 0, 1e-12);
  EXPECT_NEAR(*rows_[1].gain, 1, 1e-6);
  EXPECT_TRUE(rows_[0].right());
  EXPECT_TRUE(rows_[1].right());
  EXPECT_EQ(rows_[0].note, "");
  EXPECT_FALSE(rows_[0].of_vendor.has_value());
}

TEST_F(ComparisonTest, TurnsAreTaken) {
  Add(kSlow);
  Add(kFast);
  plan_.rules.warmup = 0;
  ASSERT_EQ(Run(), absl::OkStatus());
  const std::vector<std::string> samples(launched.begin() + 6, launched.end());
  EXPECT_THAT(samples, ElementsAre("slow", "fast", "fast", "slow", "slow", "fast", "fast", "slow"));
}

TEST_F(ComparisonTest, OperandsRotate) {
  Add(kFast);
  ASSERT_EQ(Run(), absl::OkStatus());
  const std::vector<const void*>& seen = backend_.operands_seen;
  for (size_t i = 2; i < seen.size(); ++i) EXPECT_NE(seen[i], seen[i - 1]) << i;
}

TEST_F(ComparisonTest, ElementsThatAreNotWrittenAreWrong) {
  Add(kIncomplete);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_TRUE(rows_[0].measured);
  EXPECT_FALSE(rows_[0].right());
}

TEST_F(ComparisonTest, WhatIsNotExactOfIntegersIsWrong) {
  Add(kInexact);
  Add(kFast);
  plan_.shapes = {{33, 17, 64}};
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_TRUE(rows_[0].measured);
  EXPECT_FALSE(rows_[0].right());
  EXPECT_THAT(rows_[0].note, HasSubstr("a product of -1, 0 and 1 is off by 1"));
  EXPECT_LT(rows_[0].error.absolute, 1e-4) << "of the drawn operands";
  EXPECT_TRUE(rows_[1].right()) << rows_[1].note;
  EXPECT_EQ(rows_[1].note, "");
}

// Without room, only the bound of drawn elements remains, and the row says so.
TEST_F(ComparisonTest, WithoutMemoryNothingIsComparedExactly) {
  Add(kInexact);
  plan_.shapes = {{1024, 1024, 64}};  // 4.75 MiB, and half a MiB for another A and B
  backend_.room = size_t{5} << 20;
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_TRUE(rows_[0].measured) << rows_[0].note;
  EXPECT_TRUE(rows_[0].right());
  EXPECT_EQ(rows_[0].note, "not compared exactly: no memory for operands of -1, 0 and 1");
}

TEST_F(ComparisonTest, SumsThatF16DoesNotHoldAreNotComparedExactly) {
  Problem problem = {.m = 1,
                     .n = 1,
                     .k = 140'000,
                     .types = {DType::kF16, DType::kF16, DType::kF16, Compute::kF16}};
  const auto missing = [&] {
    OperandSets sets(backend_, kStandardInputs);
    ExactCheck check;
    EXPECT_EQ(sets.Prepare(problem), absl::OkStatus());
    EXPECT_EQ(check.Prepare(backend_, sets, problem, 8, [] { return absl::OkStatus(); }),
              absl::OkStatus());
    return check.missing();
  };
  EXPECT_EQ(missing(), "");
  problem.k += 1;
  EXPECT_EQ(missing(), "not compared exactly: k of 140001, at most 140000");
  problem.types = kF32[0];
  EXPECT_EQ(missing(), "");
}

TEST_F(ComparisonTest, RefusalIsARowsNote) {
  Add(kRefusing);
  Add(kFast);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_FALSE(rows_[0].measured);
  EXPECT_EQ(rows_[0].note, "it needs a device of its own");
  EXPECT_TRUE(rows_[1].measured);
}

TEST_F(ComparisonTest, LostDeviceEndsTheRun) {
  Add(kRefusing);
  backend_.lost = true;
  EXPECT_THAT(std::string(Run().message()), HasSubstr("the device is gone"));
}

TEST_F(ComparisonTest, NoMemoryIsEveryRowsNote) {
  Add(kFast);
  Add(kSlow);
  backend_.full = true;
  ASSERT_EQ(Run(), absl::OkStatus());
  ASSERT_EQ(rows_.size(), 2u);
  EXPECT_FALSE(rows_[1].measured);
  EXPECT_EQ(rows_[1].note, "no memory");
}

TEST_F(ComparisonTest, ScratchOfAnEarlierShapeGivesWayToOperands) {
  const Kernel greedy = [] {
    Kernel kernel = KernelOf("greedy", Fast);
    kernel.workspace_bytes = [](const Problem& p) { return p.m == 8 ? kGreed : size_t{1} << 20; };
    return kernel;
  }();
  Add(greedy);
  plan_.shapes = {{8, 8, 8}, {1024, 1024, 64}};
  backend_.room = kGreed + (size_t{1} << 20);
  ASSERT_EQ(Run(), absl::OkStatus());
  ASSERT_EQ(rows_.size(), 2u);
  EXPECT_TRUE(rows_[0].measured) << rows_[0].note;
  EXPECT_TRUE(rows_[1].measured) << rows_[1].note;
}

TEST_F(ComparisonTest, LongLinesAreFew) {
  Add(kIdle);
  plan_.shapes = {{5, 5, int64_t{1} << 22}};
  backend_.room = size_t{300} << 20;
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_TRUE(rows_[0].measured) << rows_[0].note;
  // Four lines of each operand, and the elements of D where they cross.
  EXPECT_EQ(backend_.bytes_read, 2 * (size_t{4} << 22) * sizeof(float) + 16 * sizeof(float));
}

TEST_F(ComparisonTest, PastTheCutoffAKernelRunsOnce) {
  Add(kVerySlow);
  Add(kFast);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_TRUE(rows_[0].measured);
  EXPECT_EQ(rows_[0].iterations, 1);
  EXPECT_THAT(rows_[0].note, HasSubstr("50 times as long"));
  EXPECT_EQ(std::count(launched.begin(), launched.end(), "very slow"), 3)
      << "checked twice and timed";
}

TEST_F(ComparisonTest, TheCutoffDoesNotCountLoading) {
  Add(kLoading);
  Add(kFast);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(rows_[0].iterations, plan_.rules.iterations);
  EXPECT_EQ(rows_[0].note, "");
  EXPECT_NEAR(rows_[0].seconds, 1e-3, 1e-9);
}

TEST_F(ComparisonTest, ShortRunsHaveNoCutoff) {
  Add(kShort);
  Add(kInstant);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(rows_[0].iterations, plan_.rules.iterations);
  EXPECT_EQ(rows_[0].note, "");
}

// The baseline takes none, and both are right.
TEST_F(ComparisonTest, BlockScalesGoToKernelsThatTakeThem) {
  static std::vector<bool> scaled;
  scaled.clear();
  const Kernel& host = **FindKernel("host_reference");
  Kernel with = host, without = host;
  with.name = "with";
  without.name = "without";
  without.block_scales = false;
  with.launch = without.launch = [](const Launch& launch) {
    scaled.push_back(HasBlockScales(launch.problem));
    return Take<1000>("scaled", launch);
  };
  const Types fp8{DType::kE4M3, DType::kE4M3, DType::kF16, Compute::kF32};
  for (const Kernel* kernel : {&with, &without}) {
    plan_.candidates.push_back({.kernel = kernel, .types = fp8});
  }
  plan_.shapes = {{33, 17, 300}};
  plan_.rules.scales = {.a = ScaleBlocks::kLines, .b = ScaleBlocks::kTiles};
  ASSERT_EQ(Run(), absl::OkStatus());
  ASSERT_EQ(rows_.size(), 2u);
  for (const Row& row : rows_) EXPECT_TRUE(row.right()) << row.kernel << row.note;
  EXPECT_THAT(scaled, Contains(true));
  EXPECT_THAT(scaled, Contains(false));
}

TEST_F(ComparisonTest, AKernelThatIgnoresItsBlockScalesIsWrong) {
  const Kernel& host = **FindKernel("host_reference");
  Kernel ignores = host;
  ignores.name = "ignores";
  ignores.launch = [](const Launch& launch) {
    Problem without = launch.problem;
    without.scales_a = without.scales_b = ScaleBlocks::kNone;
    return (*FindKernel("host_reference"))
        ->launch({.problem = without, .operands = launch.operands, .workspace = launch.workspace});
  };
  const Types fp8{DType::kE4M3, DType::kE4M3, DType::kF16, Compute::kF32};
  plan_.candidates = {{.kernel = &ignores, .types = fp8}};
  plan_.shapes = {{33, 17, 300}};
  plan_.rules.scales = {.a = ScaleBlocks::kLines, .b = ScaleBlocks::kTiles};
  ASSERT_EQ(Run(), absl::OkStatus());
  ASSERT_EQ(rows_.size(), 1u);
  EXPECT_FALSE(rows_[0].right());
}

TEST_F(ComparisonTest, BaselinesAreMeasuredBeside) {
  Add(kSlow);
  plan_.rules.baselines = true;
  ASSERT_EQ(Run(), absl::OkStatus());
  ASSERT_EQ(rows_.size(), 3u);
  EXPECT_FALSE(rows_[0].baseline);
  EXPECT_EQ(rows_[1].kernel, "host_openblas");
  EXPECT_EQ(rows_[2].kernel, kTunedVendor);
  EXPECT_TRUE(rows_[2].baseline);
  EXPECT_EQ(rows_[2].note, "algorithm 2 of 3");
  EXPECT_NEAR(*rows_[0].of_tuned_vendor, 0.5, 1e-6);
}

// The library's algorithms are sampled as often as every other candidate.
TEST_F(ComparisonTest, AlgorithmsHaveTheSameRounds) {
  Add(kVerySlow);
  plan_.rules.baselines = true;
  plan_.rules.warmup = 0;
  plan_.rules.cutoff = 1000;
  ASSERT_EQ(Run(), absl::OkStatus());
  // Its first runs, checked twice and timed, and the samples.
  const auto runs = 3 + plan_.rules.iterations;
  EXPECT_EQ(std::count(launched.begin(), launched.end(), "very slow"), runs);
  EXPECT_EQ(std::count(launched.begin(), launched.end(), "slow"), runs);
  EXPECT_EQ(std::count(launched.begin(), launched.end(), "fast"), runs);
  EXPECT_EQ(rows_.back().iterations, plan_.rules.iterations);
}

TEST_F(ComparisonTest, TheBaselineIsTheFastestOfAllThatTheLibraryHas) {
  Kernel quick = kShort;  // half a millisecond; the best algorithm takes a whole one
  quick.name = "cublas_quick";
  quick.family = "cublas";
  Add(kSlow);
  Add(quick);
  plan_.rules.baselines = true;
  ASSERT_EQ(Run(), absl::OkStatus());
  ASSERT_EQ(rows_.size(), 4u);
  const Row& best = rows_.back();
  EXPECT_EQ(best.kernel, kTunedVendor);
  EXPECT_EQ(best.family, "cublaslt");
  EXPECT_TRUE(best.baseline);
  EXPECT_EQ(best.note, "cublas_quick");
  EXPECT_EQ(best.params, "");
  EXPECT_NEAR(best.seconds, 5e-4, 1e-9);
  EXPECT_EQ(rows_[1].kernel, "cublas_quick");
  EXPECT_FALSE(rows_[1].baseline) << "it was selected";
  EXPECT_NEAR(*rows_[0].of_tuned_vendor, 0.25, 1e-6);
}

TEST_F(ComparisonTest, AnotherFamilysKernelIsNoBaseline) {
  Add(kInstant);
  plan_.rules.baselines = true;
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(rows_.back().note, "algorithm 2 of 3");
  EXPECT_GT(*rows_[0].of_tuned_vendor, 100);
}

TEST_F(ComparisonTest, BudgetLeavesOutSamplesThenSlowKernels) {
  Add(kFast);
  Add(kVerySlow);
  plan_.shapes = {{8, 8, 8}, {8, 8, 8}, {8, 8, 8}};
  plan_.rules.iterations = 1000;
  plan_.rules.cutoff = 1000;
  plan_.budget = absl::Seconds(1);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_LT(now, absl::UnixEpoch() + absl::Seconds(1.2));
  ASSERT_EQ(rows_.size(), 6u);
  for (const Row& row : rows_) EXPECT_TRUE(row.measured) << row.kernel << ": " << row.note;
  EXPECT_THAT(rows_[0].note, HasSubstr("of 1000 samples: the time budget ended"));

  rows_.clear();
  now = absl::UnixEpoch();
  plan_.budget = absl::Milliseconds(160);  // room for the first shape's first runs
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_TRUE(rows_[1].measured);
  EXPECT_FALSE(rows_[3].measured);
  EXPECT_THAT(rows_[3].note, HasSubstr("left out: a run takes about 0.05 s"));
}

TEST_F(ComparisonTest, WarmupsFitTheTimeLeft) {
  Add(kVerySlow);  // 50 ms
  plan_.rules.warmup = 1000;
  plan_.rules.iterations = 1;
  plan_.budget = absl::Milliseconds(370);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(launched.size(), 3u + 4 + 1) << "the first runs, warm-ups in 220 ms, a sample";
  EXPECT_EQ(rows_[0].iterations, 1);
}

// First runs go backwards: the fast algorithm, which stands behind the slow one, has the first.
TEST_F(ComparisonTest, TheVendorsAlgorithmsEndWithTheBudget) {
  Add(kFast);
  plan_.rules.baselines = true;
  plan_.budget = absl::Microseconds(1500);  // past it while the fast algorithm is timed
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(launched, ElementsAre("fast", "fast"));
  EXPECT_EQ(rows_[0].note, "left out: the time budget ended");
  EXPECT_EQ(rows_[1].note, "left out: the time budget ended");
  EXPECT_THAT(rows_[2].note, HasSubstr("algorithm 2 of 3; "));
  EXPECT_THAT(rows_[2].note, HasSubstr("1 of 4 samples: the time budget ended"));
}

TEST_F(ComparisonTest, TheVendorsAlgorithmsCanBeCancelled) {
  Add(kFast);
  plan_.rules.baselines = true;
  plan_.shapes = {{1, 1, 1}};
  // A step for the operands, twice two lines and an element, the question for algorithms, the one
  // that is refused, and the fast one.
  cancel_after_ = 1 + 2 * 3 + 1 + 2;
  EXPECT_EQ(Run().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(steps_.back().step, kTunedVendor);
  EXPECT_THAT(launched, ElementsAre("fast", "fast", "fast"));
}

TEST_F(ComparisonTest, TheHostsReferenceIsLeftOutUnheardWhereItIsTooSlow) {
  const Kernel reference = KernelOf("host_reference", Fast);
  Add(reference);
  Add(kFast);
  plan_.shapes = {{1000, 100, 100}};  // 20 ms at 1e9 operations a second
  plan_.budget = absl::Milliseconds(19);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_FALSE(rows_[0].measured);
  EXPECT_THAT(rows_[0].note, HasSubstr("left out: a run takes about 0.02 s"));
  EXPECT_TRUE(rows_[1].measured) << rows_[1].note;

  rows_.clear();
  now = absl::UnixEpoch();
  plan_.budget = absl::Seconds(1);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_TRUE(rows_[0].measured) << rows_[0].note;
}

TEST_F(ComparisonTest, PastTheBudgetNothingRuns) {
  Add(kFast);
  plan_.shapes = {{8, 8, 8}, {8, 8, 8}};
  plan_.budget = absl::Milliseconds(1);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_TRUE(rows_[0].measured);
  EXPECT_EQ(rows_[1].note, "left out: the time budget ended");
}

TEST_F(ComparisonTest, CanBeCancelled) {
  Add(kFast);
  cancel_after_ = 2;
  EXPECT_EQ(Run().code(), absl::StatusCode::kCancelled);
}

TEST_F(ComparisonTest, ProgressNamesTheStepAndTheTimeLeft) {
  Add(kFast);
  plan_.shapes = {{8, 8, 8}, {8, 8, 8}};
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(steps_.front().step, "drawing operands");
  EXPECT_EQ(steps_.front().left, absl::InfiniteDuration());
  EXPECT_EQ(steps_.back().shape, 1u);
  EXPECT_GT(steps_.back().left, absl::ZeroDuration());
}

TEST_F(ComparisonTest, CandidatesOfOneLayoutCompete) {
  Add(kFast);
  Add(kSlow);
  plan_.candidates[1].layout = {.trans_a = true, .trans_b = true};
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_NEAR(*rows_[0].gain, 0, 1e-12);
  EXPECT_NEAR(*rows_[1].gain, 0, 1e-12) << "the first of its own group";
  EXPECT_TRUE(rows_[1].right());
}

// Without the refusal the system would end the program.
TEST(HostBackend, MoreThanTheHostHasIsRefused) {
  const std::unique_ptr<Backend> host = CreateHostBackend();
  constexpr size_t kMore = size_t{1} << 30;  // than others give back meanwhile
  const absl::Status refused = host->Allocate(host->free_bytes() + kMore).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("are available"));
}

}  // namespace
}  // namespace gemm::bench
