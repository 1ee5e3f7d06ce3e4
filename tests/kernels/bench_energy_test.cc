// The energy of a product, on a device whose clock and whose counter the test owns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "kernels/bench/measure/comparison.h"
#include "kernels/bench/measure/energy_meter.h"
#include "tests/kernels/bench_fakes.h"

namespace gemm::bench {
namespace {

using testing::kFast;
using testing::kRefusing;
using testing::kSlow;
using testing::kVerySlow;
using testing::launched;
using testing::now;

// The counter of a device that always takes the same power.
class FakeCounter : public EnergyCounter {
 public:
  absl::StatusOr<double> Joules() override {
    if (++readings > good_readings) return absl::UnavailableError("the GPU is lost");
    const double ticks = std::floor(absl::FDivDuration(now - absl::UnixEpoch(), tick));
    return ticks * watts * absl::ToDoubleSeconds(tick);
  }

  double watts = 500;
  absl::Duration tick = absl::Milliseconds(37);
  int readings = 0;
  int good_readings = 1000000;
};

class EnergyTest : public testing::ComparisonTest {
 protected:
  EnergyTest() {
    plan_.rules.joules_time = absl::Milliseconds(500);
    backend_.counter = &counter_;
  }

  FakeCounter counter_;
};

// 0.5 s and two ticks, in batches of 5 ms.
constexpr double kTolerance = 0.02;

TEST_F(EnergyTest, OfALaunch) {
  Add(kSlow);
  Add(kFast);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_NEAR(*rows_[0].joules, 1, 1 * kTolerance);
  EXPECT_NEAR(*rows_[1].joules, 0.5, 0.5 * kTolerance);
  EXPECT_EQ(rows_[0].note, "");
  EXPECT_FALSE(rows_[0].joules_of_baseline.has_value());
  EXPECT_LT(now, absl::UnixEpoch() + 2 * absl::Milliseconds(700));
}

TEST_F(EnergyTest, TakesTheTimeThatIsAskedFor) {
  Add(kFast);
  plan_.rules.joules_time = absl::Seconds(3);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_GE(now, absl::UnixEpoch() + absl::Seconds(3));
  EXPECT_NEAR(*rows_[0].joules, 0.5, 0.5 * kTolerance);
}

TEST_F(EnergyTest, IsNotReadUnasked) {
  Add(kFast);
  plan_.rules.joules_time = absl::ZeroDuration();
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(counter_.readings, 0);
  EXPECT_FALSE(rows_[0].joules.has_value());
  EXPECT_EQ(rows_[0].note, "");
}

TEST_F(EnergyTest, IsAShareOfTheFewestOfABaseline) {
  Add(kSlow);
  plan_.rules.baselines = true;
  backend_.catalogue_time = absl::Milliseconds(4);  // host_openblas, where the algorithm takes 1
  ASSERT_EQ(Run(), absl::OkStatus());
  ASSERT_EQ(rows_.size(), 3u);
  EXPECT_NEAR(*rows_[0].joules_of_baseline, 2, 2 * 2 * kTolerance);
  EXPECT_NEAR(*rows_[1].joules_of_baseline, 4, 4 * 2 * kTolerance);
  EXPECT_EQ(*rows_[2].joules_of_baseline, 1);
}

TEST_F(EnergyTest, OperandsRotate) {
  Add(kFast);
  ASSERT_EQ(Run(), absl::OkStatus());
  const std::vector<const void*>& all = backend_.operands_seen;
  ASSERT_GT(all.size(), 500u);
  const std::vector<const void*> seen(all.end() - 500, all.end());
  const size_t sets = std::set<const void*>(seen.begin(), seen.end()).size();
  EXPECT_GT(sets, 1u);
  for (size_t i = sets; i < seen.size(); ++i) EXPECT_EQ(seen[i], seen[i - sets]) << i;
}

TEST_F(EnergyTest, PastTheCutoffAKernelRunsNoMore) {
  Add(kVerySlow);
  Add(kFast);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_FALSE(rows_[0].joules.has_value());
  EXPECT_EQ(std::count(launched.begin(), launched.end(), "very slow"), 3);
  EXPECT_TRUE(rows_[1].joules.has_value());
}

TEST_F(EnergyTest, ACounterThatStandsStillIsANote) {
  Add(kFast);
  counter_.watts = 0;
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_TRUE(rows_[0].measured);
  EXPECT_FALSE(rows_[0].joules.has_value());
  EXPECT_EQ(rows_[0].note, "no joules: the energy counter did not change for 1s");
  EXPECT_LT(now, absl::UnixEpoch() + absl::Seconds(1.1));
}

TEST_F(EnergyTest, ACounterThatFailsIsANote) {
  Add(kRefusing);
  Add(kFast);
  counter_.good_readings = 20;
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(counter_.readings, 21);
  EXPECT_EQ(rows_[0].note, "it needs a device of its own");
  EXPECT_TRUE(rows_[1].measured);
  EXPECT_NEAR(rows_[1].seconds, 1e-3, 1e-9);
  EXPECT_FALSE(rows_[1].joules.has_value());
  EXPECT_EQ(rows_[1].note, "no joules: the GPU is lost");
}

TEST_F(EnergyTest, WithoutACounterTheNoteSaysSo) {
  Add(kFast);
  backend_.counter = nullptr;
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(rows_[0].note, "no joules: a device of this kind has none");
}

TEST_F(EnergyTest, ALostDeviceEndsTheRun) {
  static testing::FakeBackend* device;
  device = &backend_;
  const Kernel breaking = testing::KernelOf("breaking", [](const Launch& launch) {
    if (std::count(launched.begin(), launched.end(), "breaking") > 100) device->lost = true;
    return testing::Take<1000>("breaking", launch);
  });
  Add(breaking);
  EXPECT_EQ(Run().message(), "breaking on 33x17x5: the device is gone");
}

TEST_F(EnergyTest, AKernelThatFailsLaterKeepsItsTime) {
  const Kernel failing = testing::KernelOf("failing", [](const Launch& launch) {
    if (std::count(launched.begin(), launched.end(), "failing") > 100) {
      return absl::InternalError("no more");
    }
    return testing::Take<1000>("failing", launch);
  });
  Add(failing);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_NEAR(rows_[0].seconds, 1e-3, 1e-9);
  EXPECT_EQ(rows_[0].note, "no joules: no more");
}

TEST_F(EnergyTest, BeginsOnlyWhereTheBudgetHasRoom) {
  Add(kSlow);
  Add(kFast);
  plan_.budget = absl::Seconds(1);  // for one of two
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(rows_[0].note, "no joules: the time budget ended");
  EXPECT_EQ(rows_[0].iterations, 4);
  EXPECT_FALSE(rows_[0].joules.has_value());
  EXPECT_TRUE(rows_[1].joules.has_value()) << "the last is the first: baselines have theirs";
  EXPECT_LT(now, absl::UnixEpoch() + absl::Seconds(1));
}

TEST_F(EnergyTest, EndsWithTheBudget) {
  Add(kFast);
  counter_.tick = absl::Milliseconds(900);  // the second change would be at 1.8 s
  plan_.budget = absl::Seconds(1.5);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(rows_[0].note, "no joules: the time budget ended");
  EXPECT_LT(now, absl::UnixEpoch() + absl::Seconds(1.51));
}

TEST_F(EnergyTest, SmallShapesHaveAsMuchOfTheBudget) {
  Add(kFast);
  plan_.shapes = {{8, 8, 8}, {64, 64, 64}};
  plan_.budget = absl::Seconds(2);
  ASSERT_EQ(Run(), absl::OkStatus());
  for (const Row& row : rows_) EXPECT_TRUE(row.joules.has_value()) << row.note;
}

TEST_F(EnergyTest, CanBeCancelledMidway) {
  Add(kFast);
  ASSERT_EQ(Run(), absl::OkStatus());
  const size_t steps = steps_.size();
  EXPECT_EQ(steps_.back().step, "joules of fast");
  steps_.clear();
  launched.clear();
  cancel_after_ = steps - 50;
  EXPECT_EQ(Run().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(steps_.size(), cancel_after_);
  EXPECT_EQ(steps_.back().step, "joules of fast");
}

EnergyMeter::Reading At(int milliseconds, double joules, int64_t launches) {
  return {.joules = joules,
          .launches = launches,
          .time = absl::UnixEpoch() + absl::Milliseconds(milliseconds)};
}

TEST(EnergyMeter, MeasuresFromChangeToChange) {
  EnergyMeter meter(absl::Milliseconds(30));
  EXPECT_TRUE(meter.Add(At(0, 10, 5)));
  EXPECT_TRUE(meter.Add(At(5, 10, 10)));
  EXPECT_TRUE(meter.Add(At(10, 30, 15))) << "the first change: from here";
  EXPECT_TRUE(meter.Add(At(30, 70, 35))) << "too soon";
  EXPECT_TRUE(meter.Add(At(45, 70, 50))) << "no change";
  EXPECT_FALSE(meter.Add(At(50, 90, 55)));
  EXPECT_EQ(meter.joules_per_launch().value(), (90.0 - 30) / (55 - 15));
}

TEST(EnergyMeter, WaitsASecondForAChange) {
  for (const bool begun : {false, true}) {
    EnergyMeter meter(absl::Milliseconds(30));
    EXPECT_TRUE(meter.Add(At(0, 5, 0)));
    if (begun) {
      EXPECT_TRUE(meter.Add(At(0, 10, 1)));
    }
    const double stuck = begun ? 10 : 5;
    EXPECT_TRUE(meter.Add(At(999, stuck, 5)));
    EXPECT_FALSE(meter.Add(At(1000, stuck, 5)));
    EXPECT_EQ(meter.joules_per_launch().status().message(),
              "the energy counter did not change for 1s");
  }
}

TEST(EnergyMeter, ACounterThatWentBackSaysNothing) {
  EnergyMeter meter(absl::Milliseconds(30));
  EXPECT_TRUE(meter.Add(At(0, 10, 5)));
  EXPECT_TRUE(meter.Add(At(10, 30, 15)));
  EXPECT_FALSE(meter.Add(At(60, 2, 65)));
  EXPECT_EQ(meter.joules_per_launch().status().message(), "the energy counter went back");
}

}  // namespace
}  // namespace gemm::bench
