// The engine on host devices: what bounds, deadlines, cancellations and drains end.
#include <gmock/gmock.h>

#include <chrono>
#include <map>
#include <memory>
#include <thread>

#include "server/base/mutex.h"
#include "tests/engine/engine_fixture.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

TEST_F(EngineTest, CancelAtAnyPointGivesEverythingBack) {
  Make();
  const std::vector<float> a = RandomFloats(400 * 400, 1);
  for (size_t sent = 0; sent <= a.size() * 4; sent += 50000) {
    auto recorder = std::make_shared<JobRecorder>();
    auto job = engine_->Admit(Product(400, 400, 400), recorder);
    ASSERT_TRUE(job.ok()) << job.status();
    (*job)->Start();
    if (sent > 0) (*job)->Append(Role::kA, 0, AsCord(a).Subcord(0, sent), [] {});
    if (sent % 100000 == 0) Send(**job, Role::kB, a, 60000);
    (*job)->Cancel(absl::CancelledError("by the test"));
    EXPECT_EQ(recorder->Wait().status().code(), absl::StatusCode::kCancelled);
    EXPECT_FALSE(recorder->misused());
  }
  ExpectNothingHeld();
}

// Too large to be staged in one block, so that its operands come in on their own.

TEST_F(EngineTest, CancelJustAsItRunsGivesEverythingBack) {
  Make();
  const std::vector<float> a = RandomFloats(256 * 256, 1);
  int cancelled = 0;
  for (int run = 0; run < 400; ++run) {
    auto recorder = std::make_shared<JobRecorder>();
    auto job = engine_->Admit(Product(256, 256, 256), recorder);
    ASSERT_TRUE(job.ok()) << job.status();
    (*job)->Start();
    Send(**job, Role::kA, a, 1 << 20);
    std::thread canceller([job = *job, delay = run % 100] {
      const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(5 * delay);
      while (std::chrono::steady_clock::now() < end) {
      }
      job->Cancel(absl::CancelledError("by the test"));
    });
    Send(**job, Role::kB, a, 1 << 20);
    const absl::Status status = recorder->Wait().status();
    EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
    cancelled += absl::IsCancelled(status) ? 1 : 0;
    canceller.join();
  }
  EXPECT_GT(cancelled, 0) << "no job was cancelled in time";
  ExpectNothingHeld();
}

TEST_F(EngineTest, DeadlinesPassInTransferAndInTheQueue) {
  // Far more than it takes to begin a job, on a busy machine too.
  constexpr absl::Duration kLeft = absl::Seconds(1);
  EngineOptions options = OneStream();
  Make(options);
  JobSpec in_transfer = Product(10, 10, 10);
  in_transfer.deadline = SteadyNow() + kLeft;
  auto waiting = std::make_shared<JobRecorder>();
  auto job = engine_->Admit(in_transfer, waiting);
  ASSERT_TRUE(job.ok());
  (*job)->Start();
  EXPECT_THAT(waiting->Wait().status().ToString(),
              HasSubstr("DEADLINE_EXCEEDED: the deadline passed in transfer"));

  JobSpec queued = DrawnProduct(10, 10, 10);
  auto running = std::make_shared<JobRecorder>(), late = std::make_shared<JobRecorder>();
  WhileNothingEnds([&] {
    auto first = engine_->Admit(queued, running);
    ASSERT_TRUE(first.ok()) << first.status();
    (*first)->Start();
    queued.deadline = SteadyNow() + kLeft;
    auto second = engine_->Admit(queued, late);
    ASSERT_TRUE(second.ok()) << second.status();
    (*second)->Start();
    EXPECT_THAT(late->Wait().status().ToString(), HasSubstr("the deadline passed in the queue"));
  });
  EXPECT_TRUE(running->Wait().ok());
  ExpectNothingHeld();
  queued.deadline = absl::Now();
  EXPECT_EQ(engine_->Admit(queued, late).status().code(), absl::StatusCode::kDeadlineExceeded);
}

// The reports of jobs that end early.
class Accounts final : public EngineObserver {
 public:
  void OnJobEnd(const JobReport& report, const absl::Status& outcome) override {
    MutexLock lock(mutex_);
    bytes_in_[outcome.code()] += report.bytes_in;
  }
  void OnDeviceTime(absl::string_view /*caller*/, absl::Duration time) override {
    MutexLock lock(mutex_);
    device_time_ += time;
  }
  void OnTransferEnd(bool, uint64_t, absl::Duration, const absl::Status&) override {}
  uint64_t bytes_in(absl::StatusCode code) {
    MutexLock lock(mutex_);
    return bytes_in_[code];
  }
  absl::Duration device_time() {
    MutexLock lock(mutex_);
    return device_time_;
  }

 private:
  Mutex mutex_;
  std::map<absl::StatusCode, uint64_t> bytes_in_ ABSL_GUARDED_BY(mutex_);
  absl::Duration device_time_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(EngineTest, AJobThatIsCancelledInTransferHasReceivedItsBytes) {
  Accounts accounts;
  Make(SmallOptions(), &accounts);
  for (const int64_t size : {8, 300}) {  // in one block with others, and apart
    auto recorder = std::make_shared<JobRecorder>();
    auto job = engine_->Admit(Product(size, size, size), recorder);
    ASSERT_TRUE(job.ok()) << job.status();
    (*job)->Start();
    const uint64_t before = accounts.bytes_in(absl::StatusCode::kCancelled);
    Send(**job, Role::kA, RandomFloats(static_cast<size_t>(size * size), 1), 1000);
    (*job)->Cancel(absl::CancelledError("by the test"));
    EXPECT_TRUE(absl::IsCancelled(recorder->Wait().status()));
    EXPECT_EQ(accounts.bytes_in(absl::StatusCode::kCancelled) - before, size * size * 4u);
  }
  ExpectNothingHeld();
}

// The device was busy with it nevertheless.
TEST_F(EngineTest, AJobThatIsCancelledWhileItRunsHasUsedTheDevice) {
  Accounts accounts;
  Make(SmallOptions(), &accounts);
  JobSpec slow = DrawnProduct(600, 600, 600);
  slow.kernel.name = "host_reference";
  auto recorder = std::make_shared<JobRecorder>();
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  WhileNothingEnds([&] {
    auto job = engine_->Admit(slow, recorder);
    ASSERT_TRUE(job.ok()) << job.status();
    (*job)->Start();
    EXPECT_EQ(engine_->Stats().devices[0].streams.used, 1);
    absl::SleepFor(absl::Milliseconds(5));
    (*job)->Cancel(absl::CancelledError("by the test"));
    EXPECT_TRUE(absl::IsCancelled(recorder->Wait().status()));
  });
  while (accounts.device_time() == absl::ZeroDuration() && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_GT(accounts.device_time(), absl::ZeroDuration());
  ExpectNothingHeld();
}

TEST_F(EngineTest, BoundsRefuseWithWhatToDo) {
  EngineOptions options = SmallOptions();
  options.max_jobs = 1;
  options.max_job_bytes = 1 * kMiB;
  options.store_bytes = 100 * kKiB;
  options.max_matrices = 2;
  Make(options);
  auto recorder = std::make_shared<JobRecorder>();
  EXPECT_THAT(engine_->Admit(Product(1000, 1000, 1000), recorder).status().ToString(),
              HasSubstr("RESOURCE_EXHAUSTED: the job needs 12000000 bytes"));
  auto job = engine_->Admit(Product(10, 10, 10), recorder);
  ASSERT_TRUE(job.ok());
  EXPECT_THAT(engine_->Admit(Product(10, 10, 10), recorder).status().ToString(),
              HasSubstr("--max-jobs"));
  (*job)->Start();
  (*job)->Cancel(absl::CancelledError("done"));
  job->reset();
  EXPECT_THAT(Put({200, 200, gemm::DType::kF32}, {}).status().ToString(), HasSubstr("the store"));
  ASSERT_TRUE(Put({2, 2, gemm::DType::kF32}, RandomFloats(4, 1), {"x", std::nullopt}).ok());
  EXPECT_EQ(Put({2, 2, gemm::DType::kF32}, RandomFloats(4, 1), {"x", std::nullopt}).status().code(),
            absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(Put({2, 2, gemm::DType::kF32}, RandomFloats(4, 1)).ok());
  EXPECT_THAT(Put({2, 2, gemm::DType::kF32}, {}).status().ToString(), HasSubstr("its limit is 2"));
}

TEST_F(EngineTest, OneBoundOnStreams) {
  EngineOptions options = SmallOptions();
  options.streams_per_device = 129;
  EXPECT_EQ(Engine::Create(options, nullptr).status().message(),
            "--streams-per-device is 129, but must be 1 to 128");
}

TEST_F(EngineTest, MatrixExpiresAfterItsLastUse) {
  Make();
  ASSERT_TRUE(Put({2, 2, gemm::DType::kF32}, RandomFloats(4, 1), {"brief", absl::Seconds(1)}).ok());
  EXPECT_EQ(engine_->ListMatrices({.name_prefix = "br"})->matrices.size(), 1u);
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (engine_->Stats().matrices.used != 0 && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(engine_->ListMatrices({.name_prefix = ""})->matrices.size(), 0u);
  ExpectNothingHeld();
}

TEST_F(EngineTest, DrainRefusesNewWorkAndEndsWhatIsLeft) {
  Make();
  auto recorder = std::make_shared<JobRecorder>();
  auto job = engine_->Admit(Product(10, 10, 10), recorder);
  ASSERT_TRUE(job.ok());
  (*job)->Start();
  engine_->StopAdmitting();
  EXPECT_EQ(engine_->Admit(Product(1, 1, 1), recorder).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_FALSE(engine_->Drain(absl::Now() + absl::Milliseconds(20)));
  EXPECT_EQ(recorder->Wait().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(engine_->Drain(absl::Now() + absl::Seconds(10)));
}

}  // namespace
}  // namespace gemmd
