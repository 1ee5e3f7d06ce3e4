// The hang guard under a clock that the test moves: when work that does not end loses its
// device, and when it does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "server/engine/core/device_losses.h"
#include "server/engine/core/guards.h"
#include "tests/base/test_clock.h"
#include "tests/engine/fake_core.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Matrices without the dimension of the sum exist once for each product, however small that is.
TEST(HangLimit, AGroupHasTheWorkOfAllItsMatrices) {
  const std::vector<int64_t> extents(1000, 1);
  const gemm::Problem one = {.m = 1000, .n = 50, .k = 1000};
  gemm::Problem by_m = one;
  by_m.grouped = gemm::GroupedBy::kM;
  by_m.extents = extents;
  EXPECT_GE(WorkOf(by_m), WorkOf(one) + 10.0 * 999 * 50 * 1000) << "a thousand of B";
  gemm::Problem by_k = by_m;
  by_k.grouped = gemm::GroupedBy::kK;
  EXPECT_GE(WorkOf(by_k), WorkOf(one) + 10.0 * 999 * 1000 * 50) << "a thousand of D";
}

TEST(HangLimit, HasTheLongestTimeOnEachStream) {
  const absl::Duration flag = absl::Seconds(7);
  EXPECT_EQ(HangLimit(flag, 4, absl::ZeroDuration()), flag);
  EXPECT_EQ(HangLimit(flag, 1, absl::Seconds(5)), flag + absl::Seconds(5));
  EXPECT_EQ(HangLimit(flag, 4, absl::Seconds(5)), flag + absl::Seconds(20));
}

TEST(LongestTime, GrowsWithTheWorkAndDependsOnTheKindOfDevice) {
  EXPECT_EQ(LongestTime(gemm::Target::kHost, 5e7, absl::ZeroDuration()), absl::Seconds(5));
  EXPECT_EQ(LongestTime(gemm::Target::kCuda, 5e10, absl::ZeroDuration()), absl::Seconds(5));
}

TEST(LongestTime, OfWhatWasMeasuredOnAGpuIsAMultipleOfThat) {
  const absl::Duration measured = absl::Milliseconds(10);
  EXPECT_EQ(LongestTime(gemm::Target::kCuda, 5e12, measured), 64 * measured);
  EXPECT_EQ(LongestTime(gemm::Target::kCuda, 5e8, measured), absl::Milliseconds(50))
      << "no more than the slowest kernel takes";
  EXPECT_EQ(LongestTime(gemm::Target::kHost, 5e7, measured), absl::Seconds(5))
      << "its operands may be subnormal";
}

TEST(HangGrace, IsShortAndNoLongerThanTheLimit) {
  EXPECT_EQ(HangGrace(absl::Minutes(2)), absl::Seconds(5));
  EXPECT_EQ(HangGrace(absl::Seconds(1)), absl::Seconds(1));
}

class HangGuardTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kTimeout = absl::Minutes(2);
  static constexpr int kStreams = 1, kQuickStreams = 3;
  static constexpr absl::Duration kInstant = absl::Nanoseconds(1);
  // Minutes for each stream of any device.
  static constexpr double kLarge = 1e13;

  static EngineOptions Options(absl::Duration job_timeout = kTimeout) {
    EngineOptions options = FakeCore::DefaultOptions();
    options.job_timeout = job_timeout;
    return options;
  }
  static FakeDevice::Options Streams() {
    FakeDevice::Options options;
    options.streams = kStreams;
    options.quick_streams = kQuickStreams;
    return options;
  }

  absl::Duration LimitOf(double work, int streams = kStreams + kQuickStreams) {
    return HangLimit(kTimeout, streams,
                     LongestTime(fake_.device().info().caps.target, work, absl::ZeroDuration()));
  }
  void PassTime(absl::Duration time) {
    clock_.Advance(time);
    RunDue(*fake_.core.timer);
  }
  bool lost() { return !fake_.device().Health().ok(); }
  DeviceLosses& losses() { return *fake_.core.losses; }

  TestClock clock_;
  FakeCore fake_{Options(), 1, Streams()};
};

TEST_F(HangGuardTest, WorkThatIsLateHasAGraceAndThenItsDeviceIsLost) {
  const HangGuard guard(fake_.core, 0, 0);
  PassTime(LimitOf(0));
  EXPECT_FALSE(lost());
  PassTime(HangGrace(LimitOf(0)) - kInstant);
  EXPECT_FALSE(lost());
  PassTime(kInstant);
  EXPECT_TRUE(lost());
  EXPECT_EQ(losses().stats(0).hangs, 1);
  EXPECT_THAT(std::string(fake_.device().Health().message()),
              AllOf(HasSubstr("2m5s"), HasSubstr("--job-timeout"), HasSubstr("5s more")));
}

// The timer and the work go on together after a pause, so the timer comes first.
TEST_F(HangGuardTest, AProcessThatStoodStillKeepsItsDevice) {
  HangGuard guard(fake_.core, 0, 0);
  PassTime(absl::Hours(3));
  EXPECT_FALSE(lost());
  guard.End();
  PassTime(absl::Hours(3));
  EXPECT_FALSE(lost());
  EXPECT_EQ(losses().stats(0).hangs, 0);
}

TEST_F(HangGuardTest, ManyThatAreLateAreOneHang) {
  const HangGuard one(fake_.core, 0, 0), other(fake_.core, 0, 0);
  PassTime(LimitOf(0));
  PassTime(HangGrace(LimitOf(0)));
  EXPECT_TRUE(lost());
  EXPECT_EQ(losses().stats(0).hangs, 1);
}

// The timer has taken its function, and the work ends before that runs.
TEST_F(HangGuardTest, WorkThatEndsAsItsTimeIsOverLosesNothing) {
  for (const int calls_before_the_end : {0, 1}) {
    const uint64_t ticket = losses().BeginWork(0, absl::ZeroDuration());
    clock_.Advance(LimitOf(0));
    for (int i = 0; i < calls_before_the_end; ++i) losses().OnLate(0, ticket);
    losses().EndWork(0, ticket);
    for (int i = 0; i < 2; ++i) losses().OnLate(0, ticket);
    EXPECT_FALSE(lost()) << calls_before_the_end;
  }
  EXPECT_EQ(losses().stats(0).hangs, 0);
}

TEST_F(HangGuardTest, QuickStreamsMayHaveAsMuchToDoAsTheOthers) {
  const HangGuard guard(fake_.core, 0, kLarge);
  ASSERT_GT(LimitOf(kLarge), LimitOf(kLarge, kStreams) + absl::Minutes(1));
  PassTime(LimitOf(kLarge, kStreams));
  PassTime(absl::Minutes(1));
  EXPECT_FALSE(lost()) << "the limit is of all streams";
  PassTime(LimitOf(kLarge));
  PassTime(HangGrace(LimitOf(kLarge)));
  EXPECT_TRUE(lost());
}

// A small job that waits behind a large one does not hang.
TEST_F(HangGuardTest, WorkHasTheTimeOfTheLargestThatIsUnderWay) {
  std::optional<HangGuard> large(std::in_place, fake_.core, 0, kLarge);
  const HangGuard small(fake_.core, 0, 0);
  PassTime(LimitOf(0));
  PassTime(HangGrace(LimitOf(0)));
  EXPECT_FALSE(lost());
  large.reset();
  PassTime(LimitOf(kLarge));
  EXPECT_FALSE(lost());
  PassTime(HangGrace(LimitOf(kLarge)));
  EXPECT_TRUE(lost()) << "the small one has had its time";
}

// 64^3 beside 16384^3 on a GPU, which takes a few milliseconds and hours by the slowest kernel.
TEST_F(HangGuardTest, WorkBesideALargeOneThatWasMeasuredIsGivenUpSoon) {
  FakeDevice::Options gpu = Streams();
  gpu.caps.target = gemm::Target::kCuda;
  FakeCore fake(Options(), 1, gpu);
  const HangGuard large(fake.core, 0, 2.0 * 16384 * 16384 * 16384, absl::Milliseconds(15));
  const HangGuard small(fake.core, 0, 0);
  for (const absl::Duration passed : {kTimeout + absl::Seconds(5), absl::Seconds(5)}) {
    clock_.Advance(passed);
    RunDue(*fake.core.timer);
  }
  EXPECT_FALSE(fake.device().Health().ok());
}

// Nor is a small job whose second kernel stands behind a large one that came later.
TEST_F(HangGuardTest, WorkGetsMoreTimeWhereLargerWorkBeginsAfterIt) {
  const HangGuard small(fake_.core, 0, 0);
  std::optional<HangGuard> large(std::in_place, fake_.core, 0, kLarge);
  PassTime(LimitOf(0));
  PassTime(HangGrace(LimitOf(0)));
  EXPECT_FALSE(lost());
  large.reset();
  PassTime(LimitOf(kLarge));
  EXPECT_FALSE(lost());
  PassTime(HangGrace(LimitOf(kLarge)));
  EXPECT_TRUE(lost()) << "the small one has had its time";
}

TEST_F(HangGuardTest, AMovedGuardEndsWhereItIs) {
  HangGuard first(fake_.core, 0, 0);
  {
    HangGuard second = std::move(first);
    PassTime(LimitOf(0));
  }
  PassTime(absl::Hours(1));
  EXPECT_FALSE(lost());
}

TEST_F(HangGuardTest, WithoutJobTimeoutNothingIsGuarded) {
  FakeCore fake(Options(absl::ZeroDuration()), 1, Streams());
  const HangGuard guard(fake.core, 0, 0);
  for (int i = 0; i < 2; ++i) {
    clock_.Advance(absl::Hours(24));
    RunDue(*fake.core.timer);
  }
  EXPECT_TRUE(fake.device().Health().ok());
}

}  // namespace
}  // namespace gemmd
