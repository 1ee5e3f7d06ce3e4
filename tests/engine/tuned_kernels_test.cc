// Which row of a tuning table a product gets, and what `auto` makes of it. The kernels are
// those of the host, which every build has.
#include "server/engine/core/tuned_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gemm/catalogue.h"
#include "server/engine/job/dispatcher.h"
#include "tests/kernels/cuda_kernels.h"

namespace gemmd {
namespace {

using gemm::Compute;
using gemm::DType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr gemm::DeviceCaps kHost{gemm::Target::kHost, 0};
constexpr gemm::Types kF32{DType::kF32, DType::kF32, DType::kF32, Compute::kF32};
// Never the first by rank.
constexpr char kTuned[] = "host_reference";
constexpr char kRanked[] = "host_openblas";

const gemm::Machine kHere{.device = "This CPU", .library = "2"};
const gemm::Machine kBefore{.device = "This CPU", .library = "1"};

gemm::Problem Sized(int64_t m, int64_t n, int64_t k) {
  return {.m = m, .n = n, .k = k, .types = kF32};
}

struct Entry {
  gemm::Problem problem;
  const char* kernel = kTuned;
  gemm::Machine machine = kHere;
  double seconds = 1;
};

TunedKernels Tuned(const std::vector<Entry>& entries) {
  gemm::TuningTable table;
  for (const Entry& entry : entries) {
    EXPECT_TRUE(table
                    .Put(entry.machine, gemm::TunedProduct::Of(entry.problem),
                         {entry.kernel, {}, entry.seconds})
                    .ok());
  }
  return TunedKernels(table, kHere, kHost);
}

KernelPick Pick(const TunedKernels& tuned, const gemm::Problem& problem,
                const KernelRequest& request = {}, size_t max_workspace = SIZE_MAX) {
  const auto pick =
      PickKernel(request, problem, true,
                 {.device = kHost, .tuned = &tuned, .max_workspace_bytes = max_workspace});
  EXPECT_TRUE(pick.ok()) << pick.status();
  return pick.ok() ? *pick : KernelPick();
}

TEST(TunedKernels, AShapeOfTheTableGetsItsKernel) {
  const TunedKernels tuned = Tuned({{.problem = Sized(64, 32, 16), .seconds = 0.5}});
  const KernelPick pick = Pick(tuned, Sized(64, 32, 16));
  EXPECT_EQ(pick.kernel->name, kTuned);
  EXPECT_EQ(pick.rule, ChoiceRule::kTableExact);
  ASSERT_TRUE(pick.tuned.has_value());
  EXPECT_EQ(pick.tuned->seconds, 0.5);
  EXPECT_FALSE(pick.tuned->other_versions);
  EXPECT_EQ(pick.reason, "auto: fastest of the measured for 64x32x16");
}

TEST(TunedKernels, AShapeNearOneOfTheTableGetsTheNearestsKernel) {
  const TunedKernels tuned =
      Tuned({{.problem = Sized(64, 64, 64)}, {.problem = Sized(100, 64, 64), .kernel = kRanked}});
  const KernelPick pick = Pick(tuned, Sized(60, 66, 64));
  EXPECT_EQ(pick.kernel->name, kTuned);
  EXPECT_EQ(pick.rule, ChoiceRule::kTableNear);
  EXPECT_THAT(pick.reason, HasSubstr("64x64x64, the nearest shape in the tuning table"));
  EXPECT_EQ(Pick(tuned, Sized(99, 66, 64)).kernel->name, kRanked);
}

TEST(TunedKernels, ThePartOfAnOctaveBeyondTheBoundIsNotNear) {
  const TunedKernels tuned = Tuned({{.problem = Sized(64, 64, 64)}});
  EXPECT_EQ(Pick(tuned, Sized(128, 64, 64)).rule, ChoiceRule::kTableNear);
  EXPECT_EQ(Pick(tuned, Sized(32, 64, 64)).rule, ChoiceRule::kTableNear);
  EXPECT_EQ(Pick(tuned, Sized(129, 64, 64)).rule, ChoiceRule::kRank);
  EXPECT_EQ(Pick(tuned, Sized(110, 110, 64)).rule, ChoiceRule::kRank) << "in two dimensions";
}

TEST(TunedKernels, OtherTypesLayoutsAndDevicesAreNotMeant) {
  gemm::Problem f64 = Sized(64, 64, 64), transposed = Sized(64, 64, 64);
  f64.types = {DType::kF64, DType::kF64, DType::kF64, Compute::kF64};
  transposed.trans_b = true;
  const TunedKernels tuned = Tuned({{.problem = Sized(64, 64, 64)}});
  EXPECT_EQ(Pick(tuned, f64).rule, ChoiceRule::kRank);
  EXPECT_EQ(Pick(tuned, transposed).rule, ChoiceRule::kRank);
  const TunedKernels elsewhere =
      Tuned({{.problem = Sized(64, 64, 64), .machine = {.device = "Another CPU"}}});
  EXPECT_EQ(elsewhere.size(), 0u);
  EXPECT_EQ(Pick(elsewhere, Sized(64, 64, 64)).rule, ChoiceRule::kRank);
}

TEST(TunedKernels, OtherVersionsServeAndAreMarked) {
  const TunedKernels tuned =
      Tuned({{.problem = Sized(64, 64, 64), .machine = kBefore},
             {.problem = Sized(512, 64, 64), .machine = kBefore},
             {.problem = Sized(512, 64, 64), .kernel = kRanked, .machine = kHere}});
  const KernelPick pick = Pick(tuned, Sized(64, 64, 64));
  EXPECT_EQ(pick.kernel->name, kTuned);
  EXPECT_TRUE(pick.tuned->other_versions);
  EXPECT_THAT(pick.reason, HasSubstr("; with another driver or library"));
  EXPECT_EQ(Pick(tuned, Sized(512, 64, 64)).kernel->name, kRanked) << "this version comes first";
  EXPECT_EQ(Pick(tuned, Sized(500, 64, 64)).kernel->name, kRanked);
  EXPECT_EQ(tuned.of_other_versions(), 2u);
}

TEST(TunedKernels, AShapeIsMeasuredByThisDevicesVersionsInItsOwnOrThePlainClass) {
  gemm::Problem with_c = Sized(8, 8, 8);
  with_c.beta = 1;
  const TunedKernels tuned = Tuned({{.problem = Sized(64, 32, 16)},
                                    {.problem = Sized(16, 16, 16), .machine = kBefore},
                                    {.problem = with_c}});
  EXPECT_TRUE(tuned.Measured(Sized(64, 32, 16)));
  EXPECT_FALSE(tuned.Measured(Sized(64, 32, 17)));
  EXPECT_FALSE(tuned.Measured(Sized(16, 16, 16)));
  EXPECT_TRUE(tuned.Measured(with_c));
  EXPECT_FALSE(tuned.Measured(Sized(8, 8, 8)));
  gemm::Problem tuned_plain = Sized(64, 32, 16);
  tuned_plain.beta = 1;
  EXPECT_TRUE(tuned.Measured(tuned_plain));
}

TEST(TunedKernels, AnEpilogueFallsBackOnThePlainProduct) {
  gemm::Problem full = Sized(64, 64, 64);
  full.beta = 1;
  const TunedKernels plain = Tuned({{.problem = Sized(64, 64, 64)}});
  const KernelPick pick = Pick(plain, full);
  EXPECT_EQ(pick.rule, ChoiceRule::kTableExact);
  EXPECT_TRUE(pick.tuned->other_epilogue);
  EXPECT_THAT(pick.reason, HasSubstr("; without the epilogue"));
  const TunedKernels both =
      Tuned({{.problem = Sized(64, 64, 64)}, {.problem = full, .kernel = kRanked}});
  EXPECT_EQ(Pick(both, full).kernel->name, kRanked);
  EXPECT_FALSE(Pick(both, full).tuned->other_epilogue);
  EXPECT_EQ(Pick(both, Sized(64, 64, 64)).kernel->name, kTuned);
  // A plain product gets nothing from entries with an epilogue.
  EXPECT_EQ(Pick(Tuned({{.problem = full}}), Sized(64, 64, 64)).rule, ChoiceRule::kRank);
}

TEST(TunedKernels, KernelsThatCannotRunHereAreSkippedByName) {
  gemm::TuningTable table;
  const auto put = [&](int64_t m, gemm::TunedChoice choice) {
    ASSERT_TRUE(table.Put(kHere, gemm::TunedProduct::Of(Sized(m, 1, 1)), std::move(choice)).ok());
  };
  put(1, {"of_another_build", {}, 1});
  put(2, {kTuned, {{"no_such_param", 1}}, 1});
  put(3, {kRanked, {}, 1});
  const TunedKernels tuned(table, kHere, kHost);
  EXPECT_EQ(tuned.size(), 1u);
  EXPECT_THAT(tuned.skipped(), ElementsAre(kTuned, "of_another_build"));
  EXPECT_EQ(Pick(tuned, Sized(1, 1, 1)).kernel->name, kRanked);
}

TEST(TunedKernels, AFamilyAndANameLimitTheTable) {
  const TunedKernels tuned = Tuned({{.problem = Sized(64, 64, 64)}});
  EXPECT_EQ(Pick(tuned, Sized(64, 64, 64), {.family = "host"}).rule, ChoiceRule::kTableExact);
  EXPECT_EQ(Pick(tuned, Sized(64, 64, 64), {.name = "auto"}).rule, ChoiceRule::kTableExact);
  const KernelPick named = Pick(tuned, Sized(64, 64, 64), {.name = kRanked});
  EXPECT_EQ(named.kernel->name, kRanked);
  EXPECT_EQ(named.rule, ChoiceRule::kRequest);
  EXPECT_FALSE(named.tuned.has_value());
}

// A row whose scratch memory does not fit is passed over for one that does.
TEST(TunedKernels, ARowThatIsNotLegalIsPassedOver) {
  const TunedKernels tuned =
      Tuned({{.problem = Sized(64, 64, 64)}, {.problem = Sized(70, 64, 64), .kernel = kRanked}});
  const auto match = tuned.Find(Sized(64, 64, 64),
                                [](const TunedRow& row) { return row.kernel->name == kRanked; });
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->row->m, 70);
  EXPECT_FALSE(match->exact);
  EXPECT_FALSE(tuned.Find(Sized(64, 64, 64), [](const TunedRow&) { return false; }).has_value());
}

// On a GPU, one whose kernel transposes B into scratch.
TEST(TunedKernels, AKernelWhoseScratchIsTooLargeIsNotTaken) {
  const gemm::DeviceCaps hopper{gemm::Target::kCuda, 90};
  gemm::Problem problem = Sized(512, 512, 512);
  for (const gemm::Kernel* kernel : gemm::Catalogue()) {
    problem.types = kernel->types.front();
    problem.trans_a = true;
    if (!gemm::RunsOn(*kernel, hopper) || kernel->workspace_bytes == nullptr) continue;
    const size_t bytes = kernel->workspace_bytes(problem);
    if (bytes == 0) continue;
    gemm::TuningTable table;
    ASSERT_TRUE(
        table.Put(kHere, gemm::TunedProduct::Of(problem), {std::string(kernel->name), {}, 1}).ok());
    const TunedKernels tuned(table, kHere, hopper);
    const auto rule = [&](size_t room) {
      return PickKernel({}, problem, true,
                        {.device = hopper, .tuned = &tuned, .max_workspace_bytes = room})
          ->rule;
    };
    EXPECT_EQ(rule(bytes), ChoiceRule::kTableExact) << kernel->name;
    EXPECT_NE(rule(bytes - 1), ChoiceRule::kTableExact) << kernel->name;
    return;
  }
  GTEST_SKIP() << "no kernel of this build needs scratch memory";
}

TEST(PickKernel, WithoutATableTheRankDecides) {
  const auto pick = PickKernel({}, Sized(64, 64, 64), true, {.device = kHost});
  ASSERT_TRUE(pick.ok()) << pick.status();
  EXPECT_EQ(pick->kernel->name, kRanked);
  EXPECT_EQ(pick->rule, ChoiceRule::kRank);
  EXPECT_FALSE(pick->tuned.has_value());
}

using TunedCudaKernels = gemm::testing::CudaKernels;

// The meaning of a launch parameter may depend on all of these.
TEST_F(TunedCudaKernels, ParametersAreThoseOfTheVeryProductAlone) {
  const gemm::Types f16{DType::kF16, DType::kF16, DType::kF16, Compute::kF32};
  const gemm::DeviceCaps h200{gemm::Target::kCuda, 90};
  gemm::Problem measured = Sized(64, 64, 64), before = Sized(2048, 64, 64);
  measured.types = before.types = f16;
  gemm::TuningTable table;
  const gemm::TunedChoice sixth{"cublaslt_f16", {{"algorithm", 5}}, 1};
  ASSERT_TRUE(table.Put(kHere, gemm::TunedProduct::Of(measured), sixth).ok());
  ASSERT_TRUE(table.Put(kBefore, gemm::TunedProduct::Of(before), sixth).ok());
  const TunedKernels tuned(table, kHere, h200);
  const auto algorithm = [&](const gemm::Problem& problem) {
    const auto pick = PickKernel({}, problem, true, {.device = h200, .tuned = &tuned});
    EXPECT_TRUE(pick.ok() && pick->tuned.has_value());
    return pick->named_params.at("algorithm");
  };
  EXPECT_EQ(algorithm(measured), 5);
  EXPECT_EQ(algorithm(before), 0);
  gemm::Problem near = measured, full = measured;
  near.m = 66;
  full.beta = 1;
  EXPECT_EQ(algorithm(near), 0);
  EXPECT_EQ(algorithm(full), 0);
}

// Entries for other shapes: of a row with tiles of 32 rows of D, and of a library.
class NearEntries : public gemm::testing::CudaKernels {
 protected:
  static constexpr gemm::Types kF16{DType::kF16, DType::kF16, DType::kF16, Compute::kF32};
  static constexpr gemm::DeviceCaps kH200{gemm::Target::kCuda, 90};

  static gemm::Problem Rows(int64_t m) {
    return {.m = m, .n = 4096, .k = 4096, .types = kF16, .trans_b = true};
  }

  // The rule by which `problem` gets its kernel, where 32 rows have an entry.
  static ChoiceRule RuleFor(const gemm::Problem& problem, const char* kernel,
                            const gemm::DeviceEstimates& estimates = {}) {
    gemm::TuningTable table;
    EXPECT_TRUE(table.Put(kHere, gemm::TunedProduct::Of(Rows(32)), {kernel, {}, 1e-5}).ok());
    const TunedKernels tuned(table, kHere, kH200);
    const auto pick =
        PickKernel({}, problem, true, {.device = kH200, .tuned = &tuned, .estimates = estimates});
    EXPECT_TRUE(pick.ok()) << pick.status();
    return pick.ok() ? pick->rule : ChoiceRule::kNone;
  }

  static constexpr char kTiles[] = "hopper_f16_32x64x64_s8_coop1_swap";
  static constexpr char kLibrary[] = "cublaslt_f16";
};

TEST_F(NearEntries, CountOnTheSameSideOfATileBoundaryAlone) {
  EXPECT_EQ(RuleFor(Rows(32), kTiles), ChoiceRule::kTableExact);
  EXPECT_EQ(RuleFor(Rows(31), kTiles), ChoiceRule::kTableNear);
  EXPECT_EQ(RuleFor(Rows(33), kTiles), ChoiceRule::kEstimate);
  EXPECT_EQ(RuleFor(Rows(33), kLibrary), ChoiceRule::kTableNear) << "its tiles are not known";
}

TEST_F(NearEntries, DoNotCountBesideMeasurementsOfTheModel) {
  const gemm::DeviceEstimates h200 = gemm::BuiltInEstimates("NVIDIA H200", 90);
  ASSERT_NE(h200.estimates, nullptr);
  EXPECT_EQ(RuleFor(Rows(32), kTiles, h200), ChoiceRule::kTableExact);
  EXPECT_EQ(RuleFor(Rows(31), kTiles, h200), ChoiceRule::kEstimate);
  EXPECT_EQ(RuleFor(Rows(33), kLibrary, h200), ChoiceRule::kEstimate);
}

}  // namespace
}  // namespace gemmd
