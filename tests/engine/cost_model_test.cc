#include "server/engine/policy/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gemm/catalogue.h"
#include "tests/base/test_clock.h"

namespace gemmd {
namespace {

class CostModelTest : public ::testing::Test {
 protected:
  static JobWork Cube(double extent, const gemm::Kernel* kernel = gemm::Catalogue().front()) {
    return {.kernel = kernel,
            .flops = 2 * extent * extent * extent,
            .bytes = 3 * sizeof(float) * extent * extent};
  }
  double Milliseconds(const JobWork& work) {
    return absl::ToDoubleMilliseconds(model_.Estimate(work).device_time);
  }
  static bool Refuses(const JobCost& cost) { return cost.lately > absl::ZeroDuration(); }
  void ObserveMany(const JobWork& work, absl::Duration time) {
    for (int i = 0; i < 200; ++i) model_.Observe(work, time);
  }

  TestClock clock_;
  CostModel model_{gemm::Target::kHost};
};

TEST_F(CostModelTest, GuessesByOperationsAndBytesBeforeAnythingRan) {
  const JobCost small = model_.Estimate(Cube(64));
  const JobCost large = model_.Estimate(Cube(2048));
  EXPECT_FALSE(Refuses(small));
  EXPECT_GE(small.device_time, absl::Microseconds(1));
  EXPECT_GT(large.device_time, 1000 * small.device_time);
  EXPECT_LT(CostModel(gemm::Target::kCuda).Estimate(Cube(2048)).device_time,
            large.device_time / 100);
  EXPECT_GT(Milliseconds({.bytes = 1e9}), 10 * Milliseconds({.bytes = 1e7}));
}

TEST_F(CostModelTest, KnowsWhatWasMeasured) {
  for (int i = 0; i < CostModel::kSamplesToRefuse; ++i) {
    EXPECT_FALSE(Refuses(model_.Estimate(Cube(512)))) << i << " jobs are no reason to refuse one";
    EXPECT_EQ(model_.Estimate(Cube(512)).measured, absl::ZeroDuration());
    model_.Observe(Cube(512), absl::Milliseconds(13));
    EXPECT_NEAR(Milliseconds(Cube(512)), 13, 1e-6) << "the best guess from the first on";
  }
  EXPECT_TRUE(Refuses(model_.Estimate(Cube(512))));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(model_.Estimate(Cube(512)).measured), 13, 1e-6);
}

TEST_F(CostModelTest, CarriesOverToShapesOfAboutTheSameSizeAndNoOthers) {
  ObserveMany(Cube(512), absl::Milliseconds(130));
  EXPECT_NEAR(Milliseconds(Cube(530)), 130 * 1.11, 2) << "in proportion";
  const double other = Milliseconds(Cube(2048));
  model_.Observe(Cube(512), absl::Milliseconds(1));
  EXPECT_EQ(Milliseconds(Cube(2048)), other);
  EXPECT_FALSE(Refuses(model_.Estimate(Cube(2048))));
}

TEST_F(CostModelTest, KernelsTypesAndGeneratorsAreToldApart) {
  const JobWork work = Cube(512);
  JobWork kernel = work, types = work, generates = work;
  kernel.kernel = gemm::Catalogue().back();
  ASSERT_NE(kernel.kernel, work.kernel);
  types.types.b = gemm::DType::kF16;
  generates.generates = true;
  ObserveMany(work, absl::Milliseconds(500));
  for (const JobWork& other : {kernel, types, generates}) {
    EXPECT_FALSE(Refuses(model_.Estimate(other)));
    EXPECT_LT(Milliseconds(other), 100);
  }
}

TEST_F(CostModelTest, ABatchPaysForEachOfItsProducts) {
  const JobWork one = Cube(8);
  JobWork batch = one;
  batch.products = 10'000;
  batch.flops *= 10'000;
  batch.bytes *= 10'000;
  EXPECT_GT(Milliseconds(batch), 100 * Milliseconds(one));
  EXPECT_FALSE(model_.Estimate(batch).quick());
  JobWork whole = batch;  // as many operations and bytes in one product
  whole.products = 1;
  EXPECT_GT(Milliseconds(batch), Milliseconds(whole));
  ObserveMany(batch, absl::Milliseconds(500));
  EXPECT_LT(Milliseconds(whole), 100) << "they are measured apart";
}

// It must not be taken for a quick one before it was measured.
TEST(CostOfGroups, OneThatIsTakenApartPaysForItsLaunchesOnAGpu) {
  const CostModel model(gemm::Target::kCuda);
  JobWork group{.flops = 1e6, .bytes = 1e5, .products = 4096};
  EXPECT_TRUE(model.Estimate(group).quick());
  group.launches = 4096;
  EXPECT_GT(model.Estimate(group).device_time, absl::Milliseconds(10));
  EXPECT_FALSE(model.Estimate(group).quick());
}

TEST_F(CostModelTest, FollowsADeviceThatBecomesSlower) {
  ObserveMany(Cube(512), absl::Milliseconds(10));
  ObserveMany(Cube(512), absl::Milliseconds(30));
  EXPECT_NEAR(Milliseconds(Cube(512)), 30, 1);
}

TEST_F(CostModelTest, WaitingForOthersNowAndThenMakesAJobLittleDearer) {
  for (int i = 0; i < 200; ++i) {
    model_.Observe(Cube(512), absl::Milliseconds(i % 2 == 0 ? 10 : 40));
  }
  EXPECT_LT(Milliseconds(Cube(512)), 17);
}

TEST_F(CostModelTest, OneStrayTimeMovesItLittle) {
  ObserveMany(Cube(512), absl::Milliseconds(10));
  model_.Observe(Cube(512), absl::Hours(1));
  EXPECT_LT(Milliseconds(Cube(512)), 15);
  ObserveMany(Cube(512), absl::Milliseconds(10));
  model_.Observe(Cube(512), absl::ZeroDuration());
  EXPECT_GT(Milliseconds(Cube(512)), 8);
}

TEST_F(CostModelTest, AnOldMeasurementIsNoReasonToRefuse) {
  ObserveMany(Cube(512), absl::Milliseconds(13));
  clock_.Advance(CostModel::kLately);
  EXPECT_TRUE(Refuses(model_.Estimate(Cube(512))));
  clock_.Advance(absl::Nanoseconds(1));
  EXPECT_FALSE(Refuses(model_.Estimate(Cube(512))));
  EXPECT_NEAR(Milliseconds(Cube(512)), 13, 1e-6) << "it is still the best guess";
}

// One whose operands are slow to multiply keeps nobody else out.
TEST_F(CostModelTest, JobsOfOthersAreNoReasonToRefuse) {
  JobWork slow = Cube(512), other = slow;
  slow.caller = 1;
  other.caller = 2;
  ObserveMany(slow, absl::Milliseconds(150));
  EXPECT_FALSE(Refuses(model_.Estimate(other)));
  EXPECT_NEAR(Milliseconds(other), 150, 1e-6) << "the best guess that there is";
  ObserveMany(other, absl::Milliseconds(1));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(model_.Estimate(slow).lately), 150, 1e-6);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(model_.Estimate(other).lately), 1, 1e-6);
  EXPECT_LT(Milliseconds(other), 2);
}

TEST_F(CostModelTest, QuickJobsAreSmallAndShort) {
  EXPECT_TRUE(model_.Estimate(Cube(64)).quick());
  EXPECT_FALSE(model_.Estimate(Cube(512)).quick());
  const JobWork wide = {.kernel = gemm::Catalogue().front(), .flops = 1e6, .bytes = 1e8};
  EXPECT_FALSE(CostModel(gemm::Target::kCuda).Estimate(wide).quick());
  model_.Observe(Cube(64), absl::Milliseconds(5));
  EXPECT_FALSE(model_.Estimate(Cube(64)).quick()) << "of a slow kernel";
}

TEST_F(CostModelTest, ABandHasTheProductsOfUpToTwiceTheExtents) {
  int last = kQuickBand;
  for (const double extent : {256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0}) {
    EXPECT_EQ(model_.Estimate(Cube(extent)).band, last) << extent;
    EXPECT_EQ(model_.Estimate(Cube(extent + 1)).band, last + 1) << extent;
    ++last;
  }
  EXPECT_EQ(model_.Estimate(Cube(1e6)).band, kLastBand);
  EXPECT_EQ(model_.Estimate({.bytes = 1e9}).band, kQuickBand + 1);
}

TEST_F(CostModelTest, ManyKindsOfJobsTakeNoMoreMemory) {
  // More than there are slots: those that share one push each other out, and each is known
  // again as soon as it has run.
  for (size_t i = 0; i < 3 * CostModel::kSlots; ++i) {
    const JobWork work = {.kernel = gemm::Catalogue()[i % gemm::Catalogue().size()],
                          .flops = std::exp2(static_cast<double>(i % 50)),
                          .bytes = std::exp2(static_cast<double>(i / 50 % 60))};
    for (int again = 0; again < 20; ++again) model_.Observe(work, absl::Milliseconds(7));
    ASSERT_NEAR(Milliseconds(work), 7, 4);
  }
  // All slots are in use, and none speaks for a job that it is not about.
  for (int i = 0; i < 50; ++i) {
    const JobWork never = {
        .kernel = gemm::Catalogue().front(), .flops = 1e18, .bytes = std::exp2(i)};
    ASSERT_FALSE(Refuses(model_.Estimate(never)));
  }
}

}  // namespace
}  // namespace gemmd
