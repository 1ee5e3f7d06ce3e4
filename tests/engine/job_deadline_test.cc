// A deadline may pass in any step of a job or a transfer. Everything that the device does not work
// on comes back at once, the rest when the device is done.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/job/job_impl.h"
#include "server/engine/transfer/download_impl.h"
#include "tests/base/test_clock.h"
#include "tests/engine/fake_core.h"
#include "tests/engine/recorder.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

// Matrices of 256 KiB, of four staging blocks each: large in and out.
class JobDeadlineTest : public ::testing::Test {
 protected:
  static constexpr Shape kSquare{256, 256, gemm::DType::kF32};
  static constexpr uint64_t kBytes = 256 * kKiB;
  static constexpr absl::Duration kLeft = absl::Seconds(1);

  ~JobDeadlineTest() override { FakeStreamsEnd(); }

  static EngineOptions Options() {
    EngineOptions options = FakeCore::DefaultOptions();
    options.store_bytes = 2 * kMiB;
    options.max_queue_wait = absl::Hours(1);
    return options;
  }

  JobSpec Product() {
    JobSpec spec;
    spec.a = {kSquare, FromPayload{}};
    spec.b = {kSquare, FromPayload{}};
    spec.deadline = SteadyNow() + kLeft;
    return spec;
  }
  JobSpec Drawn() {
    JobSpec spec = Product();
    spec.a.source = spec.b.source = FromGenerator{{1}};
    return spec;
  }
  std::shared_ptr<JobImpl> Begin(JobSpec spec, std::shared_ptr<JobRecorder> recorder) {
    absl::StatusOr<AdmittedJob> admitted = AdmitJob(fake_.core, std::move(spec));
    EXPECT_TRUE(admitted.ok()) << admitted.status();
    auto job = std::make_shared<JobImpl>(fake_.core, *std::move(admitted), std::move(recorder),
                                         SteadyNow());
    job->Start();
    return job;
  }
  static void Send(Job& job, Role role, uint64_t offset, uint64_t bytes) {
    job.Append(role, offset, absl::Cord(std::string(bytes, 'x')), [] {});
  }
  void PassDeadline() {
    clock_.Advance(kLeft);
    RunDue(*fake_.core.timer);
  }
  void FakeStreamsEnd() {
    FakeDevice& device = fake_.device();
    device.uploads().EndAll();
    device.compute(0).EndAll();
    device.downloads().EndAll();  // of results
  }
  uint64_t memory() { return fake_.device().memory().used(); }
  // The holdings that a test expects to be held once the deadline has passed.
  struct Held {
    uint64_t memory = 0;
    size_t upload_blocks = 0;
    size_t download_blocks = 0;
  };
  void ExpectHeld(const Held& held) {
    EXPECT_EQ(memory(), held.memory);
    EXPECT_EQ(fake_.device().upload_staging().used_blocks(), held.upload_blocks);
    EXPECT_EQ(fake_.device().download_staging().used_blocks(), held.download_blocks);
  }
  void ExpectNothingHeld() {
    ExpectHeld({});
    EXPECT_EQ(fake_.core.admission->jobs().used, 0);
    EXPECT_EQ(fake_.core.admission->admitted_bytes().used, 0);
    EXPECT_EQ(fake_.core.queue_limit->gauge().used, 0);
    EXPECT_EQ(fake_.core.schedulers[0]->streams().used, 0);
    EXPECT_EQ(fake_.device().events, 0);
    EXPECT_TRUE(fake_.core.admission->WaitIdle(absl::InfinitePast())) << "a ticket is out";
  }
  static void ExpectPassed(const absl::Status& status, const char* where) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(status.message(), HasSubstr(where));
  }

  TestClock clock_;
  FakeCore fake_{Options(), 1, {.memory_bytes = 4 * kMiB, .block_bytes = 64 * kKiB, .blocks = 32}};
};

TEST_F(JobDeadlineTest, BeforeAnyPayload) {
  auto recorder = std::make_shared<JobRecorder>();
  const auto job = Begin(Product(), recorder);
  PassDeadline();
  ExpectPassed(recorder->Wait().status(), "in transfer");
  ExpectNothingHeld();
}

// Its thread stood still between the two steps.
TEST_F(JobDeadlineTest, AJobThatStartsWhenAllWereCancelledEnds) {
  absl::StatusOr<AdmittedJob> admitted = AdmitJob(fake_.core, Product());
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  auto recorder = std::make_shared<JobRecorder>();
  const auto job =
      std::make_shared<JobImpl>(fake_.core, *std::move(admitted), recorder, SteadyNow());
  fake_.core.admission->CancelAll(absl::UnavailableError("drained"));
  job->Start();
  EXPECT_EQ(recorder->Wait().status(), absl::UnavailableError("drained"));
  ExpectNothingHeld();
}

TEST_F(JobDeadlineTest, InTheMiddleOfAnOperand) {
  auto recorder = std::make_shared<JobRecorder>();
  const auto job = Begin(Product(), recorder);
  Send(*job, Role::kA, 0, kBytes);
  Send(*job, Role::kB, 0, kBytes / 2 + 100);
  EXPECT_GT(fake_.device().uploads().waiting(), 0u);
  const size_t blocks = fake_.device().upload_staging().used_blocks();
  PassDeadline();
  ExpectPassed(recorder->Wait().status(), "in transfer");
  // The copies of both operands are under way; the result has nothing to wait for.
  ExpectHeld({.memory = 2 * kBytes, .upload_blocks = blocks});
  Send(*job, Role::kB, kBytes / 2 + 100, 1000);  // it was on its way
  ExpectHeld({.memory = 2 * kBytes, .upload_blocks = blocks});
  fake_.device().uploads().EndAll();
  ExpectNothingHeld();
}

TEST_F(JobDeadlineTest, WhilePayloadWaitsForStaging) {
  std::vector<StagingBlock> taken;
  while (StagingBlock block = fake_.device().upload_staging().TryAcquire()) {
    taken.push_back(std::move(block));
  }
  auto recorder = std::make_shared<JobRecorder>();
  const auto job = Begin(Product(), recorder);
  bool consumed = false;
  job->Append(Role::kA, 0, absl::Cord(std::string(kBytes, 'x')), [&consumed] { consumed = true; });
  EXPECT_FALSE(consumed);
  PassDeadline();
  ExpectPassed(recorder->Wait().status(), "in transfer");
  taken.clear();
  EXPECT_TRUE(consumed);
  ExpectNothingHeld();
}

TEST_F(JobDeadlineTest, InTheQueue) {
  auto first = std::make_shared<JobRecorder>(), second = std::make_shared<JobRecorder>();
  JobSpec endless = Drawn();
  endless.deadline = absl::InfiniteFuture();
  const auto runs = Begin(endless, first);
  const uint64_t memory_of_one = memory();
  const auto waits = Begin(Drawn(), second);
  EXPECT_EQ(fake_.core.queue_limit->gauge().used, 1);
  PassDeadline();
  ExpectPassed(second->Wait().status(), "in the queue");
  EXPECT_EQ(fake_.core.queue_limit->gauge().used, 0);
  EXPECT_EQ(fake_.core.admission->jobs().used, 1);
  ExpectHeld({.memory = memory_of_one});
  FakeStreamsEnd();
  ASSERT_TRUE(first->Wait().ok());
  ExpectNothingHeld();
}

TEST_F(JobDeadlineTest, WhileTheKernelRuns) {
  auto recorder = std::make_shared<JobRecorder>();
  const auto job = Begin(Drawn(), recorder);
  const uint64_t all = memory();
  ASSERT_NE(fake_.device().compute(0).stop, nullptr);
  EXPECT_FALSE(*fake_.device().compute(0).stop);
  PassDeadline();
  ExpectPassed(recorder->Wait().status(), "while it ran");
  EXPECT_TRUE(*fake_.device().compute(0).stop) << "a kernel that looks at it ends now";
  ExpectHeld({.memory = all});
  FakeStreamsEnd();
  ExpectNothingHeld();
}

// Work that runs on for nobody still counts for its caller: nobody gets all streams by short
// deadlines.
TEST_F(JobDeadlineTest, WhileTheKernelRunsOnTheJobCountsAgainstItsCaller) {
  CallerQuota quota;
  quota.caller = "alice";
  quota.jobs = 1;
  JobSpec spec = Drawn();
  spec.quota = std::make_shared<const CallerQuota>(quota);
  auto recorder = std::make_shared<JobRecorder>();
  const auto job = Begin(spec, recorder);
  PassDeadline();
  ExpectPassed(recorder->Wait().status(), "while it ran");
  spec.deadline = SteadyNow() + kLeft;
  const absl::Status refused = AdmitJob(fake_.core, spec).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("jobs: the caller 'alice' has 1 of at most 1"));
  EXPECT_EQ(fake_.core.schedulers[0]->streams().used, 1);
  FakeStreamsEnd();
  EXPECT_TRUE(AdmitJob(fake_.core, spec).ok());
  ExpectNothingHeld();
}

// Nothing more of it is enqueued.
TEST_F(JobDeadlineTest, BetweenThePiecesOfAProduct) {
  FakeStream& stream = fake_.device().compute(0);
  stream.pieces = 3;
  auto recorder = std::make_shared<JobRecorder>();
  const auto job = Begin(Drawn(), recorder);
  EXPECT_EQ(stream.launches.size(), 1u);
  PassDeadline();
  ExpectPassed(recorder->Wait().status(), "while it ran");
  FakeStreamsEnd();
  EXPECT_EQ(stream.launches.size(), 1u);
  ExpectNothingHeld();
}

TEST_F(JobDeadlineTest, InTheMiddleOfTheResult) {
  auto recorder = std::make_shared<JobRecorder>(/*hold=*/100);
  const auto job = Begin(Drawn(), recorder);
  fake_.device().compute(0).EndAll();
  EXPECT_EQ(memory(), kBytes) << "the operands have served";
  fake_.device().downloads().EndOne();
  EXPECT_GT(recorder->bytes().size(), 0u);
  const size_t blocks = fake_.device().download_staging().used_blocks();
  EXPECT_GT(fake_.device().downloads().waiting(), 0u);
  PassDeadline();
  ExpectPassed(recorder->Wait().status(), "while the result was sent");
  ExpectHeld({.memory = kBytes, .download_blocks = blocks});
  fake_.device().downloads().EndAll();
  ExpectHeld({.download_blocks = 1});  // the receiver's
  EXPECT_EQ(fake_.core.admission->jobs().used, 0);
  recorder->Release();
  ExpectNothingHeld();
}

TEST_F(JobDeadlineTest, InTheMiddleOfPutMatrix) {
  UploadRecorder recorder;
  auto upload = UploadImpl::Begin(fake_.core, {.shape = kSquare, .deadline = SteadyNow() + kLeft},
                                  recorder.done());
  ASSERT_TRUE(upload.ok()) << upload.status();
  (*upload)->Start();
  (*upload)->Append(0, absl::Cord(std::string(kBytes / 2, 'x')), [] {});
  EXPECT_GT(fake_.device().uploads().waiting(), 0u);
  PassDeadline();
  ExpectPassed(recorder.Wait().status(), "in transfer");
  EXPECT_EQ(fake_.core.store->count(), 0);
  EXPECT_EQ(fake_.core.store->used_bytes(0), 0u);
  fake_.device().uploads().EndAll();
  ExpectNothingHeld();
}

TEST_F(JobDeadlineTest, WhileAMatrixIsGenerated) {
  UploadRecorder waiting, running;
  const UploadSpec spec{.shape = kSquare,
                        .generator = gemm::GeneratorSpec{.seed = 1},
                        .deadline = SteadyNow() + kLeft};
  auto runs = UploadImpl::Begin(fake_.core, spec, running.done());
  auto waits = UploadImpl::Begin(fake_.core, spec, waiting.done());
  ASSERT_TRUE(runs.ok() && waits.ok());
  (*runs)->Start();
  (*waits)->Start();
  EXPECT_EQ(fake_.core.schedulers[0]->queued(), 1);
  PassDeadline();
  ExpectPassed(running.Wait().status(), "in transfer");
  ExpectPassed(waiting.Wait().status(), "in transfer");
  EXPECT_TRUE(*fake_.device().compute(0).stop);
  EXPECT_EQ(fake_.core.store->count(), 0);
  ExpectHeld({.memory = kBytes});
  FakeStreamsEnd();
  ExpectNothingHeld();
}

// Keeps all pieces.
class KeepingListener final : public DownloadListener {
 public:
  void OnBytes(ResultPiece piece) override { pieces.push_back(std::move(piece)); }
  void OnDone(absl::Status status) override { done = std::move(status); }
  std::vector<ResultPiece> pieces;
  absl::Status done;
};

TEST_F(JobDeadlineTest, InTheMiddleOfGetMatrix) {
  StoreReservation room = *fake_.core.store->Reserve(0, kSquare.pitched_bytes(), {});
  const std::string id =
      fake_.core.store
          ->Add(std::move(room), *fake_.core.AllocateMatrix(0, kSquare, Lifetime::kMatrix))
          ->id;
  auto listener = std::make_shared<KeepingListener>();
  auto download = DownloadImpl::Begin(
      fake_.core, {.key = {.id = id}, .release = true, .deadline = SteadyNow() + kLeft}, listener);
  ASSERT_TRUE(download.ok()) << download.status();
  (*download)->Start();
  fake_.device().downloads().EndOne();
  EXPECT_GT(listener->pieces.size(), 0u);
  PassDeadline();
  ExpectPassed(listener->done, "in transfer");
  EXPECT_EQ(memory(), kBytes) << "copies of it are under way";
  listener->pieces.clear();
  fake_.device().downloads().EndAll();
  ExpectNothingHeld();
  EXPECT_EQ(fake_.core.store->count(), 0);
}

}  // namespace
}  // namespace gemmd
