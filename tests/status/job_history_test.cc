#include "server/status/job_history.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/test_clock.h"
#include "tests/telemetry/fake_catalogue.h"

namespace gemmd {
namespace {

class CountingObserver final : public EngineObserver {
 public:
  void OnJobEnd(const JobReport&, const absl::Status&) override { ++jobs; }
  void OnTransferEnd(bool, uint64_t, absl::Duration, const absl::Status&) override { ++transfers; }
  int jobs = 0;
  int transfers = 0;
};

JobReport JobOf(absl::Duration total, const std::string& caller = "alice") {
  JobReport report;
  report.kernel = "fast_f32";
  report.device = "host:0";
  report.caller = caller;
  report.m = report.n = report.k = 1000;
  report.phases.kernel = total / 2;
  report.phases.total = total;
  report.flops = 2e9;
  return report;
}

class JobHistoryTest : public ::testing::Test {
 protected:
  void End(const JobReport& report, const absl::Status& outcome = absl::OkStatus()) {
    history_.OnJobEnd(report, outcome);
  }
  void PassStep() { clock_.Advance(JobHistory::kStep); }

  TestClock clock_;
  CountingObserver next_;
  JobHistory history_{next_, kFakeCatalogue};
};

TEST(LatencyBuckets, HoldWhatTheirBoundsSay) {
  EXPECT_EQ(LatencyBuckets::IndexOf(absl::Nanoseconds(999)), 0);
  for (size_t i = 1; i < LatencyBuckets::kCount; ++i) {
    const absl::Duration lower = absl::Seconds(LatencyBuckets::LowerSeconds(i));
    EXPECT_EQ(LatencyBuckets::IndexOf(lower), i);
    EXPECT_EQ(LatencyBuckets::IndexOf(lower - absl::Nanoseconds(1)), i - 1);
    if (i > 1) {
      EXPECT_LE(LatencyBuckets::LowerSeconds(i), 1.2501 * LatencyBuckets::LowerSeconds(i - 1));
    }
  }
  EXPECT_EQ(LatencyBuckets::IndexOf(absl::Hours(9)), LatencyBuckets::kCount - 1);
  EXPECT_EQ(LatencyBuckets::IndexOf(absl::InfiniteDuration()), LatencyBuckets::kCount - 1);
}

TEST_F(JobHistoryTest, PassesEverythingOn) {
  End(JobOf(absl::Seconds(1)));
  history_.OnTransferEnd(true, 1, absl::Seconds(1), absl::OkStatus());
  EXPECT_EQ(next_.jobs, 1);
  EXPECT_EQ(next_.transfers, 1);
}

TEST_F(JobHistoryTest, CountsByKernelDeviceAndCallerInCompleteSteps) {
  JobReport batch = JobOf(absl::Milliseconds(8), "bob");
  batch.kernel = "slow";
  batch.batch = 10;
  End(JobOf(absl::Milliseconds(4)));
  End(batch);
  End(JobOf(absl::Milliseconds(4)), absl::CancelledError("gone"));
  EXPECT_EQ(history_.View().all.total.jobs, 0);
  PassStep();
  const HistoryView view = history_.View();
  EXPECT_EQ(view.all.total.jobs, 3);
  EXPECT_EQ(view.all.total.failed, 1);
  EXPECT_EQ(view.all.total.products, 11);
  EXPECT_EQ(view.all.total.flops, 4e9);
  ASSERT_EQ(view.all.steps.size(), JobHistory::kSteps);
  EXPECT_EQ(view.all.steps.back().products, 11);
  ASSERT_EQ(view.kernels.size(), 2);
  EXPECT_EQ(view.kernels[0].name, "fast_f32");
  EXPECT_EQ(view.kernels[0].total.jobs, 2);
  EXPECT_DOUBLE_EQ(view.kernels[0].total.seconds, 4e-3);
  EXPECT_EQ(view.kernels[1].total.products, 10);
  ASSERT_EQ(view.devices.size(), 1);
  EXPECT_EQ(view.devices[0].name, "host:0");
  ASSERT_EQ(view.callers.size(), 2);
  EXPECT_EQ(view.callers[0].name, "alice");
}

TEST_F(JobHistoryTest, ForgetsAfterTenMinutes) {
  End(JobOf(absl::Seconds(1)));
  for (size_t i = 0; i < JobHistory::kSteps; ++i) PassStep();
  EXPECT_EQ(history_.View().all.total.jobs, 1);
  EXPECT_EQ(history_.View().all.steps.front().jobs, 1);
  PassStep();
  EXPECT_EQ(history_.View().all.total.jobs, 0);
  EXPECT_TRUE(history_.Slowest().empty());
  End(JobOf(absl::Milliseconds(1)));
  ASSERT_EQ(history_.Slowest().size(), 1);
  EXPECT_EQ(history_.Slowest()[0].number, 2);
}

TEST_F(JobHistoryTest, PercentilesAreWithinABucketOfTheTruth) {
  for (int i = 1; i <= 1000; ++i) End(JobOf(absl::Microseconds(100 * i)));
  PassStep();
  const PhaseLatency& total = history_.View().last_minute.back();
  EXPECT_EQ(total.phase, "total");
  EXPECT_EQ(total.count, 1000);
  EXPECT_NEAR(total.p50, 0.05, 0.05 * 0.13);
  EXPECT_NEAR(total.p90, 0.09, 0.09 * 0.13);
  EXPECT_NEAR(total.p99, 0.099, 0.099 * 0.13);
  for (int i = 0; i < 12; ++i) PassStep();
  EXPECT_EQ(history_.View().last_minute.back().count, 0);
  EXPECT_EQ(history_.View().window.back().count, 1000);
}

TEST_F(JobHistoryTest, KeepsTheSlowestAndTheLatestFailedOfManyAndNoMore) {
  for (int i = 1; i <= 5000; ++i) {
    // In an order that is neither rising nor falling.
    End(JobOf(absl::Microseconds(1 + i * 7919 % 5000)));
    End(JobOf(absl::ZeroDuration()), absl::InternalError(absl::StrCat("failure ", i)));
  }
  const std::vector<EndedJob> slowest = history_.Slowest();
  ASSERT_EQ(slowest.size(), JobHistory::kMostJobs);
  for (size_t i = 0; i < slowest.size(); ++i) {
    EXPECT_EQ(slowest[i].phases.total, absl::Microseconds(5000 - i));
  }
  const std::vector<EndedJob> failed = history_.LatestFailed();
  ASSERT_EQ(failed.size(), JobHistory::kMostJobs);
  EXPECT_EQ(failed.front().error, "failure 5000");
  EXPECT_EQ(failed.back().error, absl::StrCat("failure ", 5001 - JobHistory::kMostJobs));
}

TEST_F(JobHistoryTest, ManyCallersAndDevicesShareARow) {
  for (int i = 0; i < 5000; ++i) {
    JobReport report = JobOf(absl::Milliseconds(1), absl::StrCat("caller-", i));
    report.device = absl::StrCat("device:", i);
    End(report, absl::InternalError(std::string(10'000, 'x')));
  }
  PassStep();
  const HistoryView view = history_.View();
  EXPECT_EQ(view.callers.size(), JobHistory::kMostRows);
  EXPECT_EQ(view.devices.size(), JobHistory::kMostRows);
  int64_t jobs = 0;
  for (const JobSeries& row : view.callers) jobs += row.total.jobs;
  EXPECT_EQ(jobs, 5000);
  EXPECT_EQ(history_.LatestFailed()[0].error.size(), EndedJob::kMostText);
}

}  // namespace
}  // namespace gemmd
