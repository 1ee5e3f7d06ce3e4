// The bound on the queue's time, by jobs that take some.
#include <gmock/gmock.h>

#include <memory>
#include <vector>

#include "tests/engine/engine_fixture.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

TEST_F(EngineTest, AJobThatWouldWaitTooLongIsRefusedUntilTheQueueIsShorter) {
  EngineOptions options = OneStream();
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

// The payload is on the device long before the stream is free.
TEST_F(EngineTest, TheTimeOfTheCopiesIsWithoutTheQueue) {
  Make(OneStream());
  JobSpec large = DrawnProduct(700, 700, 700);
  large.kernel.name = "host_reference";
  auto first = std::make_shared<JobRecorder>();
  auto before = engine_->Admit(large, first);
  ASSERT_TRUE(before.ok()) << before.status();
  (*before)->Start();
  const int64_t n = 200;  // more than a small payload, whose copies are not timed
  const std::vector<float> values = RandomFloats(n * n, 1);
  auto recorder = std::make_shared<JobRecorder>();
  auto job = engine_->Admit(Product(n, n, n), recorder);
  ASSERT_TRUE(job.ok()) << job.status();
  (*job)->Start();
  Send(**job, Role::kA, values, n * n * sizeof(float));
  Send(**job, Role::kB, values, n * n * sizeof(float));
  (*job)->EndOfPayload();
  const absl::StatusOr<JobResult> result = recorder->Wait();
  ASSERT_TRUE(result.ok()) << result.status();
  const PhaseDurations& phases = result->report.phases;
  EXPECT_GT(phases.host_to_device, absl::ZeroDuration());
  EXPECT_LT(phases.host_to_device + phases.queue, phases.total);
  EXPECT_TRUE(first->Wait().ok());
}

}  // namespace
}  // namespace gemmd
