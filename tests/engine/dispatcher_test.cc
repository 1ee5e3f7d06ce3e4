// The kernel that a request gets on a device, or the error if it gets none.
#include "server/engine/job/dispatcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gemm/catalogue.h"
#include "tests/kernels/cuda_kernels.h"

namespace gemmd {
namespace {

using gemm::Compute;
using gemm::DType;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr gemm::DeviceCaps kHost{gemm::Target::kHost, 0};
constexpr gemm::DeviceCaps kAmpere{gemm::Target::kCuda, 86};
constexpr gemm::DeviceCaps kHopper{gemm::Target::kCuda, 90};
constexpr gemm::Types kSingle{DType::kF32, DType::kF32, DType::kF32, Compute::kF32};
constexpr gemm::Types kHalf{DType::kF16, DType::kF16, DType::kF16, Compute::kF32};
constexpr gemm::Types kBrain{DType::kBF16, DType::kBF16, DType::kBF16, Compute::kF32};

std::string NameOf(const absl::StatusOr<KernelPick>& pick) {
  return pick.ok() ? std::string(pick->kernel->name) : pick.status().ToString();
}

TEST(PickKernel, AutoTakesTheFirstByRank) {
  const auto pick = PickKernelByRank({}, {.types = kSingle}, kHost);
  EXPECT_EQ(NameOf(pick), "host_openblas");
  EXPECT_THAT(pick->reason, HasSubstr("ranked first of 2 eligible kernels"));
}

TEST(PickKernel, WhereNoKernelCanNoneIsNamed) {
  const gemm::Types integers{DType::kS8, DType::kS8, DType::kS32, Compute::kF32};
  const auto pick = PickKernelByRank({.name = "host_openblas"}, {.types = integers}, kHost);
  EXPECT_TRUE(absl::IsInvalidArgument(pick.status())) << NameOf(pick);
  EXPECT_THAT(std::string(pick.status().message()), Not(HasSubstr("nearest")));
}

// OpenBLAS counts in 32 bits.
constexpr int64_t kTooManyRows = int64_t{1} << 31;

TEST(PickKernel, ASizeBeyondTheLimitsOfOneKernelGoesToAnother) {
  const gemm::Problem large{.m = kTooManyRows, .n = 1, .k = 1, .types = kSingle};
  EXPECT_EQ(NameOf(PickKernel({}, large, true, {.device = kHost})), "host_reference");
  EXPECT_EQ(NameOf(PickKernel({.family = "host"}, large, true, {.device = kHost})),
            "host_reference");
  const auto named = PickKernel({.name = "host_openblas"}, large, true, {.device = kHost});
  EXPECT_TRUE(absl::IsInvalidArgument(named.status())) << NameOf(named);
  EXPECT_THAT(
      std::string(named.status().message()),
      AllOf(HasSubstr("m, n and k are 2147483648, 1 and 1"), HasSubstr("at most 2147483632"),
            EndsWith("the nearest kernel that can is host_reference")));
}

// Each of its products is a launch.
TEST(PickKernel, TheLimitsOfAGroupAreThoseOfItsProducts) {
  const std::vector<int64_t> extents = {kTooManyRows / 2, kTooManyRows / 2};
  const gemm::Problem group{.m = kTooManyRows,
                            .n = 1,
                            .k = 1,
                            .types = kSingle,
                            .grouped = gemm::GroupedBy::kM,
                            .extents = extents};
  EXPECT_EQ(NameOf(PickKernel({}, group, true, {.device = kHost})), "host_openblas");
}

TEST(CheckSize, AProductHasAsManyTilesAsOneLaunchHasBlocks) {
  const gemm::Kernel kernel{.name = "tiled", .tile_m = 64, .tile_n = 32, .tile_k = 8};
  const int64_t most = std::numeric_limits<int32_t>::max();
  EXPECT_TRUE(gemm::CheckSize(kernel, {.m = most * 64, .n = 32, .k = 1}).ok());
  const absl::Status tall = gemm::CheckSize(kernel, {.m = most * 64, .n = 33, .k = 1});
  EXPECT_TRUE(absl::IsInvalidArgument(tall));
  EXPECT_THAT(std::string(tall.message()), HasSubstr("at most 2147483647 tiles of 64 x 32"));
  EXPECT_FALSE(gemm::CheckSize(kernel, {.m = most * 64, .n = 32, .k = 1, .batch = 2}).ok());
}

TEST(PickKernel, IntegersHaveRowsOfTheirOwn) {
  for (const DType d : {DType::kS32, DType::kF32, DType::kF16, DType::kBF16}) {
    const gemm::Types integers{DType::kS8, DType::kS8, d, Compute::kS32};
    EXPECT_EQ(NameOf(PickKernelByRank({}, {.types = integers}, kHost)), "host_openblas");
    if (!gemm::FindKernel("cublaslt_s8").ok()) continue;  // a build without CUDA
    EXPECT_EQ(NameOf(PickKernelByRank({.family = "cublaslt"}, {.types = integers}, kHopper)),
              "cublaslt_s8");
  }
  const gemm::Types mixed{DType::kS8, DType::kS8, DType::kS8, Compute::kS32};
  const auto pick = PickKernelByRank({}, {.types = mixed}, kHost);
  EXPECT_TRUE(absl::IsInvalidArgument(pick.status())) << NameOf(pick);
  EXPECT_THAT(std::string(pick.status().message()), HasSubstr("result=s8"));
}

TEST(PickKernel, AParameterThatNoKernelOfTheDeviceHasNamesNone) {
  const auto pick = PickKernelByRank({.name = "host_openblas", .params = {{"swizzle", 1}}},
                                     {.types = kSingle}, kHost);
  EXPECT_TRUE(absl::IsInvalidArgument(pick.status())) << NameOf(pick);
  EXPECT_THAT(std::string(pick.status().message()), EndsWith("got \"swizzle\""));
}

gemm::Problem Batch(const gemm::Types& types) {
  return {.m = 8, .n = 8, .k = 8, .types = types, .batch = 3};
}

TEST(PickKernel, OnTheHostEveryKernelTakesBatches) {
  for (const char* name : {"", "host_openblas", "host_reference"}) {
    const auto pick = PickKernel({.name = name}, Batch(kSingle), true, {.device = kHost});
    EXPECT_TRUE(pick.ok()) << pick.status();
  }
}

gemm::Problem Product(int64_t m) { return {.m = m, .n = 8, .k = 8, .types = kSingle}; }

absl::StatusOr<KernelPick> PickOnHost(const gemm::Problem& problem, KernelChoices& choices,
                                      const KernelRequest& request = {}) {
  return PickKernel(request, problem, true, {.device = kHost}, &choices);
}

// Remembers a choice that nobody would make, so that it can be told from a new one.
void Remember(KernelChoices& choices, const gemm::Problem& problem) {
  KernelPick pick = *PickKernelByRank({.name = "host_reference"}, {.types = kSingle}, kHost);
  pick.reason = "known";
  choices.Add(problem, PickSite().max_workspace_bytes, std::make_shared<const KernelPick>(pick));
}

TEST(KernelChoices, WhatWasChosenIsChosenAgain) {
  KernelChoices choices;
  const auto first = PickOnHost(Product(8), choices);
  EXPECT_EQ(NameOf(first), "host_openblas");
  ASSERT_NE(choices.Find(Product(8), PickSite().max_workspace_bytes), nullptr);
  EXPECT_EQ(choices.Find(Product(8), PickSite().max_workspace_bytes)->reason, first->reason);
  Remember(choices, Product(8));
  const auto again = PickOnHost(Product(8), choices, {.name = "auto"});
  EXPECT_EQ(NameOf(again), "host_reference");
  EXPECT_EQ(again->reason, "known");
}

// Each differs from the one that is known in one thing.
TEST(KernelChoices, AnotherProductOrSiteIsChosenForAnew) {
  KernelChoices choices;
  gemm::Problem known = Product(8);
  known.types = {DType::kF64, DType::kF64, DType::kF64, Compute::kF64};
  Remember(choices, known);
  ASSERT_EQ(NameOf(PickOnHost(known, choices)), "host_reference");
  std::vector<gemm::Problem> others(19, known);
  others[0].m = 9;
  others[1].n = 9;
  others[2].k = 9;
  others[3].types.a = DType::kF32;
  others[4].trans_a = true;
  others[5].trans_b = true;
  others[6].alpha = 2;
  others[7].beta = 1;
  others[8].bias = gemm::BiasAxis::kColumns;
  others[9].activation = gemm::Activation::kRelu;
  others[10].leaky_slope = 0;
  others[11].batch = 2;
  others[12].types.compute = Compute::kF32;
  const std::vector<int64_t> extents = {4, 4};
  others[13].grouped = gemm::GroupedBy::kM;
  others[13].extents = extents;
  others[14].types.b = DType::kF32;
  others[15].types.d = DType::kF32;
  others[16].scales_a = gemm::ScaleBlocks::kLines;
  others[17].scales_b = gemm::ScaleBlocks::kLines;
  others[18].alpha = 1e-300;  // 0 as f32
  for (const gemm::Problem& other : others) {
    EXPECT_EQ(choices.Find(other, PickSite().max_workspace_bytes), nullptr)
        << &other - others.data();
  }
  EXPECT_EQ(choices.Find(known, 1000), nullptr);
}

// Scales of a caller's tensors, say, which are part of alpha.
TEST(KernelChoices, FactorsThatAreNeitherZeroNorOneAreAlike) {
  KernelChoices choices;
  gemm::Problem known = Product(8);
  known.alpha = 0.7;
  known.leaky_slope = 0.01;
  Remember(choices, known);
  known.alpha = 0.3;
  known.leaky_slope = 0.1;
  EXPECT_EQ(NameOf(PickOnHost(known, choices)), "host_reference");
}

TEST(KernelChoices, ARequestThatSaysMoreAsksForNoneThatIsKnown) {
  KernelChoices choices;
  Remember(choices, Product(8));
  EXPECT_EQ(NameOf(PickOnHost(Product(8), choices, {.name = "host_openblas"})), "host_openblas");
  EXPECT_EQ(NameOf(PickOnHost(Product(8), choices, {.family = "host"})), "host_openblas");
  EXPECT_FALSE(PickOnHost(Product(8), choices, {.params = {{"swizzle", 1}}}).ok());
  EXPECT_EQ(NameOf(PickOnHost(Product(8), choices)), "host_reference");
}

TEST(KernelChoices, AreForgottenWhereThereAreTooMany) {
  KernelChoices choices;
  const size_t any = PickSite().max_workspace_bytes;
  const auto most = static_cast<int64_t>(KernelChoices::kMost);
  for (int64_t m = 1; m <= most; ++m) Remember(choices, Product(m));
  EXPECT_NE(choices.Find(Product(1), any), nullptr);
  Remember(choices, Product(most + 1));
  EXPECT_EQ(choices.Find(Product(1), any), nullptr);
  EXPECT_NE(choices.Find(Product(most + 1), any), nullptr);
}

TEST(KernelChoices, ErrorsAreNotKept) {
  KernelChoices choices;
  gemm::Problem mixed = Product(8);
  mixed.types = {DType::kS8, DType::kS8, DType::kS8, Compute::kS32};
  EXPECT_FALSE(PickOnHost(mixed, choices).ok());
  EXPECT_EQ(choices.Find(mixed, PickSite().max_workspace_bytes), nullptr);
}

gemm::Problem Scaled(const gemm::Types& types) {
  return {.m = 8,
          .n = 8,
          .k = 8,
          .types = types,
          .scales_a = gemm::ScaleBlocks::kLines,
          .scales_b = gemm::ScaleBlocks::kTiles};
}

TEST(PickKernel, BlockScalesGoToKernelsThatTakeThem) {
  const gemm::Types fp8{DType::kE4M3, DType::kE4M3, DType::kF16, Compute::kF32};
  EXPECT_EQ(NameOf(PickKernel({}, Scaled(fp8), true, {.device = kHost})), "host_openblas");
  for (const gemm::Kernel* kernel : gemm::Catalogue()) {
    const gemm::DeviceCaps& device = kernel->target == gemm::Target::kHost ? kHost : kHopper;
    if (!gemm::Takes(*kernel, fp8) || !gemm::RunsOn(*kernel, device)) continue;
    const auto pick =
        PickKernel({.name = std::string(kernel->name)}, Scaled(fp8), true, {.device = device});
    EXPECT_EQ(pick.ok(), kernel->block_scales) << kernel->name << pick.status();
    if (pick.ok()) continue;
    EXPECT_TRUE(absl::IsInvalidArgument(pick.status()));
    EXPECT_THAT(std::string(pick.status().message()), HasSubstr("takes no block scales"));
  }
}

TEST(ChooseForRowBlock, TakesRowsThatPromiseAndSaysForWhatTheyWereChosen) {
  auto pick = PickKernelByRank({.name = "host_reference"}, {.types = kSingle}, kHost);
  ASSERT_TRUE(pick.ok()) << pick.status();
  ASSERT_TRUE(ChooseForRowBlock(4096, *pick).ok());
  EXPECT_EQ(pick->reason, "chosen by name; as for all 4096 rows of the product");
}

TEST(ChooseForRowBlock, RefusesTheOthersByWhoChoseThem) {
  auto by_auto = PickKernelByRank({}, {.types = kSingle}, kHost);
  const absl::Status refused = ChooseForRowBlock(4096, *by_auto);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("row_block is set, but kernel host_openblas (auto: ranked first"));
  auto by_name = PickKernelByRank({.name = "host_openblas"}, {.types = kSingle}, kHost);
  EXPECT_TRUE(absl::IsInvalidArgument(ChooseForRowBlock(4096, *by_name)));
}

// A library may choose an algorithm by m, and blocks that share tiles cut them by their number.
TEST(RowBlocks, ArePromisedByKernelsWhoseRowsDoNotDependOnM) {
  for (const gemm::Kernel* kernel : gemm::Catalogue()) {
    const bool shares = absl::StrContains(kernel->name, "_streamk");
    const bool promised =
        (kernel->family == "hopper" && !shares) || kernel->name == "host_reference";
    EXPECT_EQ(kernel->row_blocks, promised) << kernel->name;
  }
}

constexpr int64_t kExtents[] = {5, 0, 3};

gemm::Problem Group(const gemm::Types& types, gemm::GroupedBy grouped) {
  return {.m = 8,
          .n = 8,
          .k = 8,
          .types = types,
          .trans_a = grouped == gemm::GroupedBy::kK,
          .grouped = grouped,
          .extents = kExtents};
}

TEST(PickKernel, OnTheHostEveryKernelTakesGroups) {
  for (const gemm::GroupedBy grouped : {gemm::GroupedBy::kM, gemm::GroupedBy::kK}) {
    for (const char* name : {"", "host_openblas", "host_reference"}) {
      const auto pick =
          PickKernel({.name = name}, Group(kSingle, grouped), true, {.device = kHost});
      EXPECT_TRUE(pick.ok()) << pick.status();
    }
  }
}

using PickCudaKernel = gemm::testing::CudaKernels;

TEST_F(PickCudaKernel, OnTheHostNamesAHostKernel) {
  const auto pick = PickKernelByRank({.name = "cublas_f32"}, {.types = kSingle}, kHost);
  EXPECT_TRUE(absl::IsFailedPrecondition(pick.status())) << NameOf(pick);
  EXPECT_THAT(std::string(pick.status().message()),
              EndsWith("needs a CUDA device; this is a host device; the nearest kernel that can "
                       "is host_openblas"));
}

TEST_F(PickCudaKernel, ABatchGoesToTheFirstThatTakesOne) {
  for (const gemm::Types& types : {kSingle, kHalf, kBrain}) {
    const auto pick = PickKernel({}, Batch(types), true, {.device = kHopper});
    ASSERT_TRUE(pick.ok()) << pick.status();
    EXPECT_TRUE(pick->kernel->batches) << pick->kernel->name;
  }
}

TEST_F(PickCudaKernel, EveryRowThatTakesTheTypesTakesGroups) {
  for (const char* name : {"cublas_f32", "cublaslt_f32", "sgemm_naive_f32"}) {
    const auto pick =
        PickKernel({.name = name}, Group(kSingle, gemm::GroupedBy::kM), true, {.device = kHopper});
    EXPECT_TRUE(pick.ok()) << pick.status();
  }
}

// If the family has a row of the types that does.
TEST_F(PickCudaKernel, AGroupByMGoesToOneThatTakesItInOneLaunch) {
  for (const gemm::Types& types : {kSingle, kHalf, kBrain}) {
    bool any = false;
    for (const gemm::Kernel* kernel : gemm::Catalogue()) {
      any |= kernel->groups && kernel->deterministic && gemm::Takes(*kernel, types) &&
             gemm::RunsOn(*kernel, kHopper);
    }
    const auto pick = PickKernel({}, Group(types, gemm::GroupedBy::kM), true, {.device = kHopper});
    ASSERT_TRUE(pick.ok()) << pick.status();
    EXPECT_EQ(pick->kernel->groups, any) << pick->kernel->name;
  }
}

TEST_F(PickCudaKernel, ARowWithoutBatchesIsRefusedWithOneThatHasThem) {
  const auto pick = PickKernel({.name = "cublas_f32"}, Batch(kSingle), true, {.device = kHopper});
  EXPECT_TRUE(absl::IsInvalidArgument(pick.status())) << NameOf(pick);
  EXPECT_THAT(std::string(pick.status().message()),
              HasSubstr("batch_count is 3, but kernel cublas_f32 takes one product at a time; the "
                        "nearest kernel that can is cublaslt_f32"));
  EXPECT_TRUE(PickKernelByRank({.name = "cublas_f32"}, {.types = kSingle}, kHopper).ok());
}

TEST_F(PickCudaKernel, WhereNoKernelOfTheTypesTakesBatchesTheBatchIsNamed) {
  const auto of_family =
      PickKernel({.family = "cublas"}, Batch(kSingle), true, {.device = kHopper});
  EXPECT_TRUE(absl::IsInvalidArgument(of_family.status())) << NameOf(of_family);
  EXPECT_THAT(std::string(of_family.status().message()),
              HasSubstr("batch_count is 3, but no kernel of this device of family \"cublas\" "
                        "takes batches of a=f32"));
  // fp8 on a device with cuBLASLt's rows of it, but without Hopper's.
  constexpr gemm::Types kFp8{DType::kE4M3, DType::kE4M3, DType::kF16, Compute::kF32};
  constexpr gemm::DeviceCaps kAda{gemm::Target::kCuda, 89};
  const auto of_types = PickKernel({}, Batch(kFp8), true, {.device = kAda});
  EXPECT_TRUE(absl::IsInvalidArgument(of_types.status())) << NameOf(of_types);
  EXPECT_TRUE(PickKernelByRank({}, {.types = kFp8}, kAda).ok());
  EXPECT_TRUE(PickKernel({}, Batch(kFp8), true, {.device = kHopper}).ok());
}

TEST_F(PickCudaKernel, WhatEveryEstimatedKernelRefusesGoesByRank) {
  const gemm::Problem problem{
      .m = 1, .n = 1, .k = int64_t{1} << 30, .types = kHalf, .trans_b = true};
  const auto pick = PickKernel({}, problem, true, {.device = kHopper});
  ASSERT_TRUE(pick.ok()) << pick.status();
  EXPECT_EQ(pick->rule, ChoiceRule::kRank);
}

// On this kind of device rows have estimates.
TEST_F(PickCudaKernel, AFamilyThatTakesNoSuchSizeRefusesItBeforeTheLaunch) {
  const gemm::Problem problem{.m = int64_t{1} << 30, .n = 1, .k = 1, .types = kHalf};
  const auto pick = PickKernel({.family = "hopper"}, problem, true, {.device = kHopper});
  EXPECT_TRUE(absl::IsInvalidArgument(pick.status())) << NameOf(pick);
  EXPECT_THAT(std::string(pick.status().message()), HasSubstr("at most 1073741823 of each"));
}

TEST_F(PickCudaKernel, TheLeastEstimateIsTaken) {
  const auto sized = [](int64_t m) {
    return gemm::Problem{.m = m, .n = 8192, .k = 8192, .types = kHalf};
  };
  const auto large = PickKernel({}, sized(8192), true, {.device = kHopper});
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_EQ(large->rule, ChoiceRule::kEstimate);
  EXPECT_THAT(large->reason, HasSubstr("auto: by estimate the fastest of "));
  for (const gemm::Kernel* kernel : gemm::Catalogue()) {
    if (!gemm::Takes(*kernel, kHalf) || kernel->estimated_seconds == nullptr) continue;
    EXPECT_LE(large->kernel->estimated_seconds(sized(8192)), kernel->estimated_seconds(sized(8192)))
        << kernel->name;
  }
  const auto few_rows = PickKernel({}, sized(8), true, {.device = kHopper});
  ASSERT_TRUE(few_rows.ok()) << few_rows.status();
  EXPECT_NE(few_rows->kernel, large->kernel);
  EXPECT_LE(few_rows->kernel->tile_m, 64);
}

// At such sizes the library's first answer takes many times as long as the fastest kernel.
TEST_F(PickCudaKernel, MeasurementsOfTheModelKeepAwayFromWhatIsSlowThere) {
  const gemm::DeviceEstimates h200 = gemm::BuiltInEstimates("NVIDIA H200", 90);
  ASSERT_NE(h200.estimates, nullptr);
  EXPECT_EQ(h200.model(), "NVIDIA H200");
  EXPECT_EQ(gemm::BuiltInEstimates("NVIDIA A100", 80).model(), "");
  const gemm::Problem problem{.m = 18, .n = 248, .k = 4148, .types = kSingle};
  const auto pick = PickKernel({}, problem, true, {.device = kHopper, .estimates = h200});
  ASSERT_TRUE(pick.ok()) << pick.status();
  EXPECT_EQ(pick->rule, ChoiceRule::kEstimate);
  EXPECT_NE(pick->kernel->name, "cublaslt_f32");
  EXPECT_THAT(pick->reason, HasSubstr(" us, from measurements on NVIDIA H200"));
}

TEST_F(PickCudaKernel, WithoutEstimatesTheRankDecides) {
  const gemm::Problem problem{.m = 512, .n = 512, .k = 512, .types = kHalf};
  const auto rule = [&](const KernelRequest& request, const PickSite& site) {
    const auto pick = PickKernel(request, problem, true, site);
    EXPECT_TRUE(pick.ok()) << pick.status();
    return pick.ok() ? pick->rule : ChoiceRule::kNone;
  };
  EXPECT_EQ(rule({}, {.device = kHopper}), ChoiceRule::kEstimate);
  EXPECT_EQ(rule({}, {.device = kAmpere}), ChoiceRule::kRank) << "no row with one runs there";
  EXPECT_EQ(rule({.family = "hopper"}, {.device = kHopper}), ChoiceRule::kEstimate);
  EXPECT_EQ(rule({.family = "cublas"}, {.device = kHopper}), ChoiceRule::kRank);
  const auto by_types = PickKernelByRank({}, {.types = kHalf}, kHopper);
  ASSERT_TRUE(by_types.ok()) << by_types.status();
  EXPECT_EQ(by_types->rule, ChoiceRule::kRank) << "without a shape";
}

// Every row of TF32 transposes B here.
TEST_F(PickCudaKernel, AnEstimateIsNoReasonToTakeMoreScratchThanThereIs) {
  const gemm::Problem problem{.m = 512,
                              .n = 512,
                              .k = 512,
                              .types = {DType::kF32, DType::kF32, DType::kF32, Compute::kTF32}};
  const auto roomy = PickKernel({}, problem, true, {.device = kHopper});
  ASSERT_TRUE(roomy.ok()) << roomy.status();
  EXPECT_EQ(roomy->rule, ChoiceRule::kEstimate);
  const size_t bytes = gemm::WorkspaceBytes(*roomy->kernel, problem);
  ASSERT_GT(bytes, 0u);
  const auto narrow =
      PickKernel({}, problem, true, {.device = kHopper, .max_workspace_bytes = bytes - 1});
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  EXPECT_EQ(narrow->rule, ChoiceRule::kRank);
}

TEST_F(PickCudaKernel, TypesThatItDoesNotTakeNameOneThatTakesThem) {
  const auto pick = PickKernelByRank({.name = "cublas_f32"}, {.types = kBrain}, kHopper);
  EXPECT_TRUE(absl::IsInvalidArgument(pick.status())) << NameOf(pick);
  EXPECT_THAT(std::string(pick.status().message()), HasSubstr("does not take (a bf16, b bf16"));
  EXPECT_THAT(std::string(pick.status().message()),
              EndsWith("; the nearest kernel that can is cublas_bf16"));
}

// Rows of the family come before others, however near the others' names are.
TEST_F(PickCudaKernel, TypesThatTheFamilyTakesStayInTheFamily) {
  const auto pick =
      PickKernelByRank({.name = "grouped_f16_128x256x64_s3_w8"}, {.types = kBrain}, kHopper);
  const std::string message(pick.status().message());
  const size_t at = message.rfind(' ');
  const auto named = gemm::FindKernel(message.substr(at + 1));
  ASSERT_TRUE(named.ok()) << message;
  EXPECT_EQ((*named)->family, "grouped");
  EXPECT_TRUE(gemm::Takes(**named, kBrain));
}

TEST_F(PickCudaKernel, AParameterOutOfItsRangeNamesNoRowThatCannot) {
  for (const gemm::Kernel* kernel : gemm::Catalogue()) {
    if (kernel->params.empty() || !gemm::RunsOn(*kernel, kHopper)) continue;
    const gemm::ParamSpec& spec = kernel->params.front();
    const KernelRequest request{.name = std::string(kernel->name),
                                .params = {{std::string(spec.name), spec.max + 1}}};
    const auto pick = PickKernelByRank(request, {.types = kernel->types.front()}, kHopper);
    ASSERT_TRUE(absl::IsInvalidArgument(pick.status())) << NameOf(pick);
    EXPECT_THAT(std::string(pick.status().message()), HasSubstr("it must be"));
  }
}

TEST_F(PickCudaKernel, EveryRefusedRowNamesOneThatIsTaken) {
  int refused = 0;
  for (const gemm::DeviceCaps& device : {kHost, kAmpere, kHopper}) {
    for (const gemm::Types& types : {kSingle, kHalf, kBrain}) {
      for (const gemm::Kernel* kernel : gemm::Catalogue()) {
        const auto pick =
            PickKernelByRank({.name = std::string(kernel->name)}, {.types = types}, device);
        if (pick.ok()) continue;
        ++refused;
        const std::string message(pick.status().message());
        const auto again = PickKernelByRank({.name = message.substr(message.rfind(' ') + 1)},
                                            {.types = types}, device);
        EXPECT_TRUE(again.ok()) << message;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace gemmd
