// The engine on host devices: matrices on their way in and results on their way out.
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "tests/engine/engine_fixture.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

TEST_F(EngineTest, SplitUploadCompletesWhenItsRangesCoverIt) {
  Make();
  const Shape shape{333, 77, gemm::DType::kF32};
  const std::vector<float> values = RandomFloats(333 * 77, 6);
  const absl::Cord bytes = AsCord(values);
  const std::vector<ByteSpan> ranges = {{0, 50001}, {50001, 40000}, {90001, 333 * 77 * 4 - 90001}};
  std::vector<std::unique_ptr<UploadRecorder>> recorders;
  std::vector<std::shared_ptr<Upload>> uploads;
  UploadSpec spec;
  spec.shape = shape;
  spec.upload_id = "one";
  for (const ByteSpan& range : ranges) {
    spec.range = range;
    recorders.push_back(std::make_unique<UploadRecorder>());
    auto upload = engine_->BeginUpload(spec, recorders.back()->done());
    ASSERT_TRUE(upload.ok()) << upload.status();
    (*upload)->Start();
    uploads.push_back(*upload);
  }
  UploadRecorder unused;
  spec.range = ByteSpan{50000, 2};
  const auto overlapping = engine_->BeginUpload(spec, unused.done());
  EXPECT_THAT(overlapping.status().message(), HasSubstr("overlaps"));
  int complete = 0;
  std::string id;
  for (size_t i = ranges.size(); i-- > 0;) {
    uploads[i]->Append(ranges[i].offset, bytes.Subcord(ranges[i].offset, ranges[i].length), [] {});
    uploads[i]->EndOfPayload();
    const absl::StatusOr<UploadResult> result = recorders[i]->Wait();
    ASSERT_TRUE(result.ok()) << result.status();
    complete += result->complete;
    id = result->matrix.id;
  }
  EXPECT_EQ(complete, 1);
  auto listener = std::make_shared<DownloadRecorder>();
  auto download = engine_->BeginDownload({{id, ""}, false, ByteSpan{49999, 40005}}, listener);
  ASSERT_TRUE(download.ok()) << download.status();
  (*download)->Start();
  ASSERT_TRUE(listener->Wait().ok());
  const std::vector<std::byte> part = listener->bytes();
  ASSERT_EQ(part.size(), 40005u);
  EXPECT_EQ(std::memcmp(part.data(), reinterpret_cast<const char*>(values.data()) + 49999, 40005),
            0);
}

TEST_F(EngineTest, FailedSplitUploadEndsItsOtherCallsAndFreesTheMatrix) {
  Make();
  UploadSpec spec;
  spec.shape = {100, 100, gemm::DType::kF32};
  spec.upload_id = "two";
  UploadRecorder first, second;
  spec.range = ByteSpan{0, 20000};
  auto one = engine_->BeginUpload(spec, first.done());
  spec.range = ByteSpan{20000, 20000};
  auto two = engine_->BeginUpload(spec, second.done());
  ASSERT_TRUE(one.ok() && two.ok());
  (*one)->Start();
  (*two)->Start();
  (*one)->Append(5, absl::Cord("wrong"), [] {});
  EXPECT_EQ(first.Wait().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(second.Wait().status().code(), absl::StatusCode::kAborted);
  ExpectNothingHeld();
  EXPECT_EQ(engine_->Stats().matrices.used, 0);
}

TEST_F(EngineTest, AMatrixIsThereOnceItsPayloadHasEnded) {
  Make();
  UploadSpec spec;
  spec.shape = {100, 100, gemm::DType::kF32};
  spec.keep.name = "x";
  for (const bool too_long : {false, true}) {
    UploadRecorder recorder;
    auto upload = engine_->BeginUpload(spec, recorder.done());
    ASSERT_TRUE(upload.ok()) << upload.status();
    (*upload)->Start();
    std::atomic<bool> held = true;
    const std::string elements(40000, 'x');
    (*upload)->Append(0, absl::MakeCordFromExternal(elements, [&] { held = false; }), [] {});
    // The received bytes do not wait for the end.
    while (held) absl::SleepFor(absl::Milliseconds(1));
    absl::SleepFor(absl::Milliseconds(20));
    EXPECT_TRUE(engine_->ListMatrices({.name_prefix = "x"})->matrices.empty());
    if (too_long) (*upload)->Append(40000, absl::Cord("x"), [] {});
    (*upload)->EndOfPayload();
    const auto result = recorder.Wait();
    EXPECT_EQ(result.status().code(),
              too_long ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kOk);
    EXPECT_EQ(engine_->DeleteMatrix({.name = "x"}).ok(), !too_long);
  }
  ExpectNothingHeld();
}

// Begins an upload of 64 KiB.
class UploadTimeoutTest : public EngineTest {
 protected:
  void Begin(const std::string& upload_id = "one") {
    EngineOptions options = SmallOptions();
    options.upload_timeout = absl::Milliseconds(400);
    Make(options);
    UploadSpec spec;
    spec.shape = {128, 128, gemm::DType::kF32};
    spec.upload_id = upload_id;
    auto upload = engine_->BeginUpload(spec, recorder_.done());
    ASSERT_TRUE(upload.ok()) << upload.status();
    upload_ = *std::move(upload);
    upload_->Start();
  }

  UploadRecorder recorder_;
  std::shared_ptr<Upload> upload_;
};

TEST_F(UploadTimeoutTest, BytesThatWaitInTheServerAreNotTheClientsDelay) {
  Begin();
  StagingPool& staging = engine_->devices()[0]->upload_staging();
  std::vector<StagingBlock> taken;
  for (size_t i = 0; i < staging.blocks(); ++i) taken.push_back(staging.TryAcquire());
  ASSERT_TRUE(taken.back());
  upload_->Append(0, absl::Cord(std::string(64 * kKiB, 'x')), [] {});
  upload_->EndOfPayload();
  absl::SleepFor(absl::Milliseconds(1500));
  taken.clear();
  const absl::StatusOr<UploadResult> result = recorder_.Wait();
  EXPECT_TRUE(result.ok()) << result.status();
}

TEST_F(UploadTimeoutTest, SaysWhatPassed) {
  Begin();
  upload_->Append(0, absl::Cord(std::string(kKiB, 'x')), [] {});
  EXPECT_EQ(recorder_.Wait().status().ToString(),
            "DEADLINE_EXCEEDED: upload_id \"one\" saw no byte for 400ms (--upload-timeout)");
  ExpectNothingHeld();
}

TEST_F(UploadTimeoutTest, HoldsForOneThatIsNotSplit) {
  Begin(/*upload_id=*/"");
  EXPECT_EQ(recorder_.Wait().status().ToString(),
            "DEADLINE_EXCEEDED: the upload saw no byte for 400ms (--upload-timeout)");
  ExpectNothingHeld();
}

TEST_F(EngineTest, AMatrixDeletedByNameOnItsWayDoesNotStay) {
  Make();
  UploadSpec spec;
  spec.shape = {100, 100, gemm::DType::kF32};
  spec.keep.name = "x";
  UploadRecorder deleted, kept;
  auto first = engine_->BeginUpload(spec, deleted.done());
  ASSERT_TRUE(first.ok()) << first.status();
  (*first)->Start();
  const auto record = engine_->DeleteMatrix({.name = "x"});
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->name, "x");
  EXPECT_FALSE(record->id.empty());
  EXPECT_TRUE(absl::IsNotFound(engine_->DeleteMatrix({.name = "x"}).status()));
  // The name is free for another, which the first one's end does not touch.
  auto second = engine_->BeginUpload(spec, kept.done());
  ASSERT_TRUE(second.ok()) << second.status();
  (*second)->Start();
  for (const auto& upload : {*first, *second}) {
    upload->Append(0, absl::Cord(std::string(40000, 'x')), [] {});
    upload->EndOfPayload();
  }
  EXPECT_TRUE(deleted.Wait().ok());
  const auto landed = kept.Wait();
  ASSERT_TRUE(landed.ok()) << landed.status();
  EXPECT_EQ(engine_->Stats().matrices.used, 1);
  EXPECT_EQ(engine_->DeleteMatrix({.name = "x"})->id, landed->matrix.id);
  ExpectNothingHeld();
  EXPECT_EQ(engine_->Stats().matrices.used, 0);
}

TEST_F(EngineTest, SlowReceiverHoldsItsWindowAndNoMore) {
  Make();
  const JobSpec spec = DrawnProduct(1000, 1000, 10);
  auto recorder = std::make_shared<JobRecorder>(/*hold=*/1000);
  auto job = engine_->Admit(spec, recorder);
  ASSERT_TRUE(job.ok());
  (*job)->Start();
  recorder->WaitForBytes(8 * 128 * kKiB);
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(recorder->bytes().size(), 8 * 128 * kKiB);
  EXPECT_EQ(engine_->Stats().devices[0].download_staging_bytes.used, 8 * 128 * kKiB);
  // Others are served meanwhile.
  auto other = std::make_shared<JobRecorder>();
  auto second = engine_->Admit(spec, other);
  ASSERT_TRUE(second.ok());
  (*second)->Start();
  EXPECT_TRUE(other->Wait().ok());
  recorder->Release();
  ASSERT_TRUE(recorder->Wait().ok());
  EXPECT_EQ(recorder->bytes(), other->bytes());
  ExpectNothingHeld();
}

// One caller with many results that it does not take, in a pool of 32 blocks.
TEST_F(EngineTest, AReceiverOfManyJobsHoldsOneShareAndOthersGoOn) {
  Make();
  JobSpec spec = DrawnProduct(500, 500, 10);
  spec.receiver = NewReceiver();
  std::vector<std::shared_ptr<JobRecorder>> stuck;
  std::vector<std::shared_ptr<Job>> jobs;
  for (int i = 0; i < 20; ++i) {
    stuck.push_back(std::make_shared<JobRecorder>(/*hold=*/1000));
    auto job = engine_->Admit(spec, stuck.back());
    ASSERT_TRUE(job.ok());
    (*job)->Start();
    jobs.push_back(*job);
  }
  // Both receivers that release at once and receivers with a share of their own.
  for (const ReceiverId receiver : {kPromptReceiver, NewReceiver()}) {
    spec.receiver = receiver;
    auto other = std::make_shared<JobRecorder>();
    auto job = engine_->Admit(spec, other);
    ASSERT_TRUE(job.ok());
    (*job)->Start();
    EXPECT_TRUE(other->Wait().ok());
  }
  EXPECT_LE(engine_->Stats().devices[0].download_staging_bytes.used, 8 * 128 * kKiB);
  for (const auto& job : jobs) job->Cancel(absl::CancelledError("the test has seen enough"));
  for (const auto& recorder : stuck) recorder->Release();
  ExpectNothingHeld();
}

// Releases pieces on threads of its own, the last one first.
class Scatterer {
 public:
  Scatterer() {
    for (int i = 0; i < 3; ++i) threads_.emplace_back([this] { LetGo(); });
  }
  ~Scatterer() {
    {
      MutexLock lock(mutex_);
      ended_ = true;
      changed_.NotifyAll();
    }
    for (std::thread& thread : threads_) thread.join();
  }

  void Take(std::shared_ptr<StagingBlock> owner) {
    MutexLock lock(mutex_);
    owners_.push_back(std::move(owner));
    changed_.NotifyOne();
  }

 private:
  void LetGo() {
    while (true) {
      std::shared_ptr<StagingBlock> owner;  // let go unlocked
      MutexLock lock(mutex_);
      while (owners_.empty() && !ended_) changed_.Wait(mutex_);
      if (owners_.empty()) return;
      owner = std::move(owners_.back());
      owners_.pop_back();
    }
  }

  Mutex mutex_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<StagingBlock>> owners_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

// The engine may be the last to hold it, on one of the scatterer's threads.
class ScatteringRecorder : public JobRecorder {
 public:
  explicit ScatteringRecorder(Scatterer& scatterer) : scatterer_(scatterer) {}

  void OnResult(ResultPiece piece) override {
    std::shared_ptr<StagingBlock> owner = std::move(piece.owner);
    JobRecorder::OnResult(std::move(piece));
    scatterer_.Take(std::move(owner));
  }

 private:
  Scatterer& scatterer_;
};

// A piece that is released while the next is fetched must not overtake it.
TEST_F(EngineTest, PiecesStayInOrderHoweverTheyAreLetGo) {
  Make();
  const JobSpec spec = DrawnProduct(1000, 1000, 4);
  std::vector<std::byte> first;
  Scatterer scatterer;
  for (int run = 0; run < 20; ++run) {
    auto recorder = std::make_shared<ScatteringRecorder>(scatterer);
    auto job = engine_->Admit(spec, recorder);
    ASSERT_TRUE(job.ok()) << job.status();
    (*job)->Start();
    ASSERT_TRUE(recorder->Wait().ok());
    ASSERT_FALSE(recorder->misused()) << "run " << run;
    if (run == 0) first = recorder->bytes();
    ASSERT_EQ(recorder->bytes(), first) << "run " << run;
  }
  ExpectNothingHeld();
}

}  // namespace
}  // namespace gemmd
