// The engine on host devices: the holdings of small jobs while they wait, and when a job releases
// an operand for good.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/engine/engine_fixture.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSide = 16;
constexpr Shape kSquare{kSide, kSide, gemm::DType::kF32};

// One stream, and as few staging blocks as there may be.
class SmallJobsTest : public EngineTest {
 protected:
  struct Running {
    std::shared_ptr<JobRecorder> recorder;
    std::shared_ptr<Job> job;
  };

  void MakeNarrow(int max_queued_jobs = 1024) {
    EngineOptions options = OneStream();
    options.staging_bytes = 16 * options.staging_block_bytes;
    options.max_queued_jobs = max_queued_jobs;
    Make(options);
  }

  Running Begin(const JobSpec& spec) {
    Running running{.recorder = std::make_shared<JobRecorder>()};
    auto job = engine_->Admit(spec, running.recorder);
    EXPECT_TRUE(job.ok()) << job.status();
    running.job = *std::move(job);
    running.job->Start();
    return running;
  }

  // Takes the only stream for some tenths of a second, or with a larger side for
  // seconds.
  Running BeginLong(int64_t side = 700) {
    JobSpec spec = DrawnProduct(side, side, side);
    spec.kernel.name = "host_reference";
    Running running = Begin(spec);
    EXPECT_EQ(engine_->Stats().devices[0].streams.used, 1);
    return running;
  }

  Running BeginSmall() {
    Running running = Begin(Product(kSide, kSide, kSide));
    Send(*running.job, Role::kA, a_, 1 << 20);
    Send(*running.job, Role::kB, b_, 1 << 20);
    return running;
  }

  // A kernel under way is not broken off.
  void ExpectStreamFree() {
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    const auto used = [this] { return engine_->Stats().devices[0].streams.used; };
    while (used() > 0 && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
    ASSERT_EQ(used(), 0);
  }

  bool Resident(absl::string_view name) {
    return !engine_->ListMatrices({.name_prefix = std::string(name)})->matrices.empty();
  }

  // In memory of its own, as gRPC's slices are; counts itself out at its end.
  absl::Cord Borrowed(const std::vector<float>& values) {
    ++borrowed_;
    return absl::MakeCordFromExternal(
        absl::string_view(reinterpret_cast<const char*>(values.data()),
                          values.size() * sizeof(float)),
        [this] { --borrowed_; });
  }

  const std::vector<float> a_ = RandomFloats(kSide * kSide, 1);
  const std::vector<float> b_ = RandomFloats(kSide * kSide, 2);
  std::atomic<int> borrowed_ = 0;
};

// Runs a function on the device's thread, and notes on which threads ends are told.
class ThreadNotes {
 public:
  struct Listener final : public JobListener {
    explicit Listener(ThreadNotes& notes) : notes(notes) {}
    void OnResult(ResultPiece) override {}
    void OnDone(absl::StatusOr<JobResult> result) override {
      EXPECT_TRUE(result.ok()) << result.status();
      notes.Note();
    }
    ThreadNotes& notes;
  };

  void Note() {
    MutexLock lock(mutex_);
    threads_.push_back(std::this_thread::get_id());
    changed_.NotifyAll();
  }
  std::vector<std::thread::id> Await(size_t count) {
    MutexLock lock(mutex_);
    while (threads_.size() < count) changed_.Wait(mutex_);
    return threads_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::thread::id> threads_;
};

TEST_F(SmallJobsTest, EndsAreToldElsewhereWhileTheDevicesThreadHasWork) {
  EngineOptions options = SmallOptions();
  options.quick_streams = 0;  // the streams are watched, and these jobs are quick
  Make(options);
  Device& device = *engine_->devices()[0];
  constexpr size_t kJobs = 64;
  ThreadNotes notes;
  // Holds the device's thread until all streams have ended a job, as the thread sees one
  // by one afterwards.
  std::atomic<bool> holding = false, go_on = false;
  std::thread::id device_thread;
  device.compute_streams()[0]->Notify([&](absl::Status) {
    device_thread = std::this_thread::get_id();
    holding = true;
    while (!go_on) std::this_thread::yield();
  });
  while (!holding) std::this_thread::yield();
  std::vector<std::shared_ptr<Job>> jobs;
  for (size_t i = 0; i < kJobs; ++i) {
    auto job = engine_->Admit(DrawnProduct(kSide, kSide, kSide),
                              std::make_shared<ThreadNotes::Listener>(notes));
    ASSERT_TRUE(job.ok()) << job.status();
    jobs.push_back(*std::move(job));
    jobs.back()->Start();
  }
  // A stream has run its earlier work once it runs later work.
  for (const std::unique_ptr<Stream>& stream : device.compute_streams()) {
    const EventPtr from = device.AcquireEvent();
    const EventPtr to = device.AcquireEvent();
    ASSERT_EQ(stream->Record(*from), absl::OkStatus());
    ASSERT_EQ(stream->Record(*to), absl::OkStatus());
    stream->Notify([](const absl::Status&) {});  // the stream begins what is before it
    while (device.Elapsed(*from, *to) == absl::ZeroDuration()) std::this_thread::yield();
  }
  go_on = true;
  const std::vector<std::thread::id> threads = notes.Await(kJobs);
  EXPECT_GE(std::count_if(threads.begin(), threads.end(),
                          [&](std::thread::id id) { return id != device_thread; }),
            3)
      << "of the four that had ended at once";
  jobs.clear();
  ExpectNothingHeld();
}

TEST_F(SmallJobsTest, WaitingOnesLeaveStagingToUploads) {
  MakeNarrow();
  const std::vector<float> values = RandomFloats(700 * 1000, 3);
  const Running long_one = BeginLong(1100);
  std::vector<Running> waiting;
  for (int i = 0; i < 40; ++i) waiting.push_back(BeginSmall());
  EXPECT_EQ(engine_->Stats().queued_jobs.used, 40);
  EXPECT_EQ(engine_->Stats().devices[0].upload_staging_bytes.used, 0);
  const auto put = Put({700, 1000, gemm::DType::kF32}, values, {"large", std::nullopt});
  EXPECT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(engine_->Stats().queued_jobs.used, 40) << "the upload waited for the jobs";
  ASSERT_TRUE(long_one.recorder->Wait().ok());
  for (const Running& one : waiting) {
    const absl::StatusOr<JobResult> result = one.recorder->Wait();
    ASSERT_TRUE(result.ok()) << result.status();
    ExpectProduct(kSide, kSide, kSide, a_, b_, one.recorder->bytes());
  }
  ASSERT_TRUE(engine_->DeleteMatrix({.name = "large"}).ok());
  ExpectNothingHeld();
}

TEST_F(SmallJobsTest, AJobWhoseTurnComesWaitsForABlock) {
  MakeNarrow();
  StagingPool& staging = engine_->devices()[0]->upload_staging();
  std::vector<StagingBlock> taken;
  for (size_t i = 0; i < staging.blocks(); ++i) taken.push_back(staging.TryAcquire());
  ASSERT_TRUE(taken.back());
  const Running first = BeginSmall(), cancelled = BeginSmall(), last = BeginSmall();
  EXPECT_TRUE(absl::IsDeadlineExceeded(first.recorder->Wait(absl::Milliseconds(50)).status()));
  cancelled.job->Cancel(absl::CancelledError("by the test"));
  EXPECT_TRUE(absl::IsCancelled(cancelled.recorder->Wait().status()));
  taken.clear();
  for (const Running& one : {first, last}) {
    const absl::StatusOr<JobResult> result = one.recorder->Wait();
    ASSERT_TRUE(result.ok()) << result.status();
    ExpectProduct(kSide, kSide, kSide, a_, b_, one.recorder->bytes());
  }
  ExpectNothingHeld();
}

TEST_F(SmallJobsTest, OneCancelledWhileItWaitsForABlockGivesItsStreamOn) {
  MakeNarrow();
  StagingPool& staging = engine_->devices()[0]->upload_staging();
  std::vector<StagingBlock> taken;
  for (size_t i = 0; i < staging.blocks(); ++i) taken.push_back(staging.TryAcquire());
  const Running first = BeginSmall();
  first.job->Cancel(absl::CancelledError("by the test"));
  EXPECT_TRUE(absl::IsCancelled(first.recorder->Wait().status()));
  taken.clear();
  EXPECT_TRUE(BeginSmall().recorder->Wait().ok());
  ExpectNothingHeld();
}

TEST_F(SmallJobsTest, ReceivedBytesAreNotKeptWhileTheRestIsOnItsWay) {
  MakeNarrow();
  const Running one = Begin(Product(kSide, kSide, kSide));
  one.job->Append(Role::kA, 0, Borrowed(a_), [] {});
  EXPECT_EQ(borrowed_, 0);
  one.job->Append(Role::kB, 0, Borrowed(b_), [] {});
  const absl::StatusOr<JobResult> result = one.recorder->Wait();
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectProduct(kSide, kSide, kSide, a_, b_, one.recorder->bytes());
  EXPECT_EQ(borrowed_, 0);
}

TEST_F(SmallJobsTest, ReceivedBytesAreNotKeptInTheQueue) {
  MakeNarrow();
  Running first, one;
  WhileNothingEnds([&] {
    first = BeginSmall();
    one = Begin(Product(kSide, kSide, kSide));
    one.job->Append(Role::kA, 0, Borrowed(a_), [] {});
    one.job->Append(Role::kB, 0, Borrowed(b_), [] {});
    EXPECT_EQ(engine_->Stats().queued_jobs.used, 1);
    EXPECT_EQ(borrowed_, 0);
  });
  const absl::StatusOr<JobResult> result = one.recorder->Wait();
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectProduct(kSide, kSide, kSide, a_, b_, one.recorder->bytes());
}

TEST_F(SmallJobsTest, AJobThatTheQueueRefusesLeavesItsOperand) {
  MakeNarrow(/*max_queued_jobs=*/0);
  ASSERT_TRUE(Put(kSquare, a_, {"w", std::nullopt}).ok());
  JobSpec spec = DrawnProduct(kSide, kSide, kSide);
  Running first;
  WhileNothingEnds([&] {
    first = Begin(spec);
    spec.a = OperandSpec{std::nullopt, FromResident{{"", "w"}, /*release=*/true}};
    EXPECT_THAT(Begin(spec).recorder->Wait().status().ToString(),
                HasSubstr("RESOURCE_EXHAUSTED: 0 jobs wait for a stream"));
    EXPECT_TRUE(Resident("w"));
  });
  EXPECT_TRUE(first.recorder->Wait().ok());
  ExpectStreamFree();
  EXPECT_TRUE(Begin(spec).recorder->Wait().ok());
  EXPECT_FALSE(Resident("w"));
}

TEST_F(SmallJobsTest, AJobWhosePayloadIsWrongLeavesItsOperand) {
  MakeNarrow();
  ASSERT_TRUE(Put(kSquare, a_, {"w", std::nullopt}).ok());
  JobSpec spec = Product(kSide, kSide, kSide);
  spec.a = OperandSpec{std::nullopt, FromResident{{"", "w"}, /*release=*/true}};
  const Running one = Begin(spec);
  one.job->Append(Role::kB, 1, absl::Cord("x"), [] {});
  EXPECT_TRUE(absl::IsInvalidArgument(one.recorder->Wait().status()));
  EXPECT_TRUE(Resident("w"));
}

TEST_F(SmallJobsTest, AJobInTheQueueHasItsOperandForItself) {
  MakeNarrow();
  ASSERT_TRUE(Put(kSquare, a_, {"w", std::nullopt}).ok());
  JobSpec spec = Product(kSide, kSide, kSide);
  spec.a = OperandSpec{std::nullopt, FromResident{{"", "w"}, /*release=*/true}};
  Running first, one;
  WhileNothingEnds([&] {
    first = BeginSmall();
    one = Begin(spec);
    EXPECT_TRUE(Resident("w")) << "its payload is still to come";
    Send(*one.job, Role::kB, b_, 1 << 20);
    EXPECT_EQ(engine_->Stats().queued_jobs.used, 1);
    EXPECT_FALSE(Resident("w"));
  });
  ASSERT_TRUE(one.recorder->Wait().ok());
  ExpectProduct(kSide, kSide, kSide, a_, b_, one.recorder->bytes());
  ExpectNothingHeld();
}

}  // namespace
}  // namespace gemmd
