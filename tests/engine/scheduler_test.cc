#include "server/engine/core/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/engine/engine_fixture.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

class QueuePaceTest : public ::testing::Test {
 protected:
  // A turn `time` after the last one.
  void TurnAfter(absl::Duration time) {
    now_ += time;
    pace_.OnTurn(now_);
  }

  absl::Time now_ = absl::UnixEpoch();
  QueuePace pace_;
};

TEST_F(QueuePaceTest, KnowsNothingBeforeTheSecondTurn) {
  EXPECT_EQ(pace_.TimeFor(100), absl::ZeroDuration());
  TurnAfter(absl::Milliseconds(10));
  EXPECT_EQ(pace_.TimeFor(100), absl::ZeroDuration());
}

TEST_F(QueuePaceTest, IsTheMeanTimeBetweenTurns) {
  TurnAfter(absl::Milliseconds(0));
  for (const int time : {10, 20, 30}) TurnAfter(absl::Milliseconds(time));
  EXPECT_EQ(pace_.TimeFor(5), absl::Milliseconds(100));
}

TEST_F(QueuePaceTest, LeavesOutTheTimeInWhichNobodyWaited) {
  TurnAfter(absl::Milliseconds(0));
  TurnAfter(absl::Milliseconds(10));
  pace_.OnIdle();
  TurnAfter(absl::Seconds(60));
  TurnAfter(absl::Milliseconds(10));
  EXPECT_EQ(pace_.TimeFor(1), absl::Milliseconds(10));
}

TEST_F(QueuePaceTest, FollowsALoadThatChanges) {
  TurnAfter(absl::Milliseconds(0));
  for (int i = 0; i < 1000; ++i) TurnAfter(absl::Milliseconds(1));
  for (int i = 0; i < 1000; ++i) TurnAfter(absl::Milliseconds(100));
  EXPECT_GT(pace_.TimeFor(1), absl::Milliseconds(99));
}

TEST_F(EngineTest, AJobThatWouldWaitTooLongIsRefusedUntilTheQueueIsShorter) {
  EngineOptions options = SmallOptions();
  options.streams_per_device = 1;
  options.max_queue_wait = absl::Milliseconds(2);
  Make(options);
  JobSpec spec = DrawnProduct(200, 200, 200);
  spec.kernel.name = "host_reference";  // some milliseconds each
  std::vector<std::shared_ptr<JobRecorder>> recorders;
  absl::Status refused;
  // The first are taken whatever they will wait, as the pace is not known yet. So many at
  // a time have room in the device's memory, however slow it is.
  constexpr size_t kAtATime = 40;
  for (size_t i = 0; i < 400 && refused.ok(); ++i) {
    if (i >= kAtATime) (void)recorders[i - kAtATime]->Wait();
    auto recorder = std::make_shared<JobRecorder>();
    auto job = engine_->Admit(spec, recorder);
    if (job.ok()) {
      (*job)->Start();
      recorders.push_back(std::move(recorder));
    } else {
      refused = job.status();
    }
  }
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("--max-queue-wait) is 2ms"));
  EXPECT_GE(recorders.size(), 2u);
  for (const auto& recorder : recorders) {
    // Those that were admitted before the pace was known may be refused when ready.
    const absl::Status status = recorder->Wait().status();
    EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
  }
  ExpectNothingHeld();
  auto recorder = std::make_shared<JobRecorder>();
  auto job = engine_->Admit(spec, recorder);
  ASSERT_TRUE(job.ok()) << job.status();
  (*job)->Start();
  EXPECT_TRUE(recorder->Wait().ok());
}

}  // namespace
}  // namespace gemmd
