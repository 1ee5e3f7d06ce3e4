// The engine on host devices: what jobs, uploads and downloads promise.
#include "server/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gemm/reference.h"
#include "tests/engine/recorder.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

EngineOptions SmallOptions() {
  EngineOptions options;
  options.devices = "host";
  options.device_memory_bytes = 64 * kMiB;
  options.staging_bytes = 4 * kMiB;
  options.staging_block_bytes = 128 * kKiB;
  options.streams_per_device = 2;
  options.copy_threads = 2;
  return options;
}

std::vector<float> RandomFloats(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

absl::Cord AsCord(const std::vector<float>& values) {
  return absl::Cord(absl::string_view(reinterpret_cast<const char*>(values.data()),
                                      values.size() * sizeof(float)));
}

class EngineTest : public ::testing::Test {
 protected:
  void Make(EngineOptions options = SmallOptions()) {
    absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Create(options, nullptr);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  // m x k times k x n in f32, both operands sent.
  static JobSpec Product(int64_t m, int64_t n, int64_t k) {
    JobSpec spec;
    spec.a.shape = Shape{m, k, gemm::DType::kF32};
    spec.a.source = FromPayload{};
    spec.b.shape = Shape{k, n, gemm::DType::kF32};
    spec.b.source = FromPayload{};
    return spec;
  }

  static void Send(Job& job, Role role, const std::vector<float>& values, size_t chunk) {
    absl::Cord all = AsCord(values);
    uint64_t offset = 0;
    while (!all.empty()) {
      const size_t size = std::min(chunk, all.size());
      job.Append(role, offset, all.Subcord(0, size), [] {});
      all.RemovePrefix(size);
      offset += size;
    }
  }

  // All that a job can hold is back: what the device still works on may take a
  // moment.
  void ExpectNothingHeld(uint64_t device_bytes = 0) {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    EngineStats stats = engine_->Stats();
    const auto held = [&] {
      stats = engine_->Stats();
      const DeviceStats& device = stats.devices[0];
      return stats.jobs.used != 0 || stats.admitted_bytes.used != 0 ||
             stats.queued_jobs.used != 0 || device.streams.used != 0 ||
             device.upload_staging_bytes.used != 0 || device.download_staging_bytes.used != 0 ||
             device.memory_bytes.used != static_cast<int64_t>(device_bytes);
    };
    while (held() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_FALSE(held()) << "jobs " << stats.jobs.used << ", admitted " << stats.admitted_bytes.used
                         << ", queued " << stats.queued_jobs.used << ", memory "
                         << stats.devices[0].memory_bytes.used << ", staging "
                         << stats.devices[0].upload_staging_bytes.used << "+"
                         << stats.devices[0].download_staging_bytes.used;
  }

  void ExpectProduct(int64_t m, int64_t n, int64_t k, const std::vector<float>& a,
                     const std::vector<float>& b, const std::vector<std::byte>& bytes) {
    ASSERT_EQ(bytes.size(), static_cast<size_t>(m * n) * sizeof(float));
    gemm::Problem problem;
    problem.m = m;
    problem.n = n;
    problem.k = k;
    gemm::Operands operands;
    operands.a = a.data();
    operands.lda = k;
    operands.b = b.data();
    operands.ldb = n;
    std::vector<std::byte> d = bytes;
    operands.d = d.data();
    operands.ldd = n;
    EXPECT_LE(gemm::CompareWithReference(problem, operands, 2000, 1).worst_ratio, 1.0);
  }

  absl::StatusOr<UploadResult> Put(const Shape& shape, const std::vector<float>& values,
                                   KeepSpec keep = {}) {
    UploadSpec spec;
    spec.shape = shape;
    spec.keep = std::move(keep);
    UploadRecorder recorder;
    auto upload = engine_->BeginUpload(spec, recorder.done());
    if (!upload.ok()) return upload.status();
    (*upload)->Start();
    (*upload)->Append(0, AsCord(values), [] {});
    (*upload)->EndOfPayload();
    return recorder.Wait();
  }

  std::unique_ptr<Engine> engine_;
};

// Shapes on both sides of the small path's bound, chunks that cut lines.
class EngineProductTest : public EngineTest,
                          public ::testing::WithParamInterface<std::array<int64_t, 4>> {};

TEST_P(EngineProductTest, SentOperandsGiveTheProduct) {
  Make();
  const auto [m, n, k, chunk] = GetParam();
  const std::vector<float> a = RandomFloats(m * k, 1), b = RandomFloats(k * n, 2);
  auto recorder = std::make_shared<JobRecorder>();
  auto job = engine_->Admit(Product(m, n, k), recorder);
  ASSERT_TRUE(job.ok()) << job.status();
  (*job)->Start();
  Send(**job, Role::kB, b, chunk);
  Send(**job, Role::kA, a, chunk);
  (*job)->EndOfPayload();
  const absl::StatusOr<JobResult> result = recorder->Wait();
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectProduct(m, n, k, a, b, recorder->bytes());
  EXPECT_FALSE(recorder->misused());
  EXPECT_EQ(result->report.m, m);
  EXPECT_EQ(result->report.bytes_in, (m * k + k * n) * sizeof(float));
  EXPECT_EQ(result->report.bytes_out, m * n * sizeof(float));
  EXPECT_GT(result->report.phases.kernel, absl::ZeroDuration());
  EXPECT_GT(result->report.phases.total, result->report.phases.kernel);
  ExpectNothingHeld();
}

INSTANTIATE_TEST_SUITE_P(Shapes, EngineProductTest,
                         ::testing::Values(std::array<int64_t, 4>{1, 1, 1, 100},
                                           std::array<int64_t, 4>{1, 7, 3, 5},
                                           std::array<int64_t, 4>{5, 1, 2, 7},
                                           std::array<int64_t, 4>{64, 64, 64, 4096},
                                           std::array<int64_t, 4>{257, 129, 65, 1001},
                                           std::array<int64_t, 4>{301, 503, 207, 70001},
                                           std::array<int64_t, 4>{700, 600, 500, 1000000},
                                           std::array<int64_t, 4>{20000, 3, 5, 65536}));

TEST_F(EngineTest, ColumnMajorResultTransposesBiasAndC) {
  Make();
  const int64_t m = 3, n = 2, k = 4;
  const std::vector<float> a = RandomFloats(m * k, 1), b = RandomFloats(k * n, 2),
                           c = RandomFloats(m * n, 3), bias = RandomFloats(n, 4);
  JobSpec spec = Product(m, n, k);
  spec.b.shape = Shape{n, k, gemm::DType::kF32, true};  // stored n x k, by columns
  spec.transpose_b = true;
  spec.c = OperandSpec{Shape{m, n, gemm::DType::kF32, true}, FromPayload{}};
  spec.bias = OperandSpec{Shape{1, n, gemm::DType::kF32, true}, FromPayload{}};
  spec.beta = 2;
  spec.alpha = -1;
  spec.activation = gemm::Activation::kLeakyRelu;
  spec.leaky_slope = 0.5;
  spec.output_column_major = true;
  auto recorder = std::make_shared<JobRecorder>();
  auto job = engine_->Admit(spec, recorder);
  ASSERT_TRUE(job.ok()) << job.status();
  (*job)->Start();
  // b is n x k by columns: element (j, p) at p * n + j, the same bytes as a
  // row-major k x n matrix.
  Send(**job, Role::kA, a, 1000);
  Send(**job, Role::kB, b, 1000);
  Send(**job, Role::kC, c, 1000);
  Send(**job, Role::kBias, bias, 1000);
  ASSERT_TRUE(recorder->Wait().ok());
  const std::vector<std::byte> bytes = recorder->bytes();
  std::vector<float> d(m * n);
  ASSERT_EQ(bytes.size(), d.size() * sizeof(float));
  std::memcpy(d.data(), bytes.data(), bytes.size());
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += double{a[i * k + p]} * double{b[p * n + j]};
      const double x = -sum + 2 * c[j * m + i] + bias[j];
      EXPECT_NEAR(d[j * m + i], x > 0 ? x : 0.5 * x, 1e-5) << i << "," << j;
    }
  }
}

TEST_F(EngineTest, ResidentGeneratedAndKeptOperandsWork) {
  Make();
  const std::vector<float> a = RandomFloats(40 * 30, 5);
  auto put = Put({40, 30, gemm::DType::kF32}, a, {"weights", std::nullopt});
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_TRUE(put->complete);

  JobSpec spec;
  spec.a.source = FromResident{{"", "weights"}, true};
  spec.b.shape = Shape{30, 20, gemm::DType::kF32};
  spec.b.source = FromGenerator{{7, gemm::Distribution::kNormal, 0, 1}};
  spec.keep_result = KeepSpec{"product", std::nullopt};
  spec.stream_result = false;
  auto recorder = std::make_shared<JobRecorder>();
  auto job = engine_->Admit(spec, recorder);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(engine_->DeleteMatrix({"", "weights"}).status().code(), absl::StatusCode::kNotFound);
  (*job)->Start();
  const absl::StatusOr<JobResult> result = recorder->Wait();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->kept.has_value());
  EXPECT_EQ(result->kept->name, "product");
  EXPECT_TRUE(recorder->bytes().empty());

  std::vector<float> b(30 * 20);
  ASSERT_TRUE(gemm::GenerateHost({7, gemm::Distribution::kNormal, 0, 1},
                                 {b.data(), gemm::DType::kF32, 30, 20, 80, false})
                  .ok());
  auto listener = std::make_shared<DownloadRecorder>();
  auto download = engine_->BeginDownload({{result->kept->id, ""}, true, std::nullopt}, listener);
  ASSERT_TRUE(download.ok()) << download.status();
  (*download)->Start();
  ASSERT_TRUE(listener->Wait().ok());
  ExpectProduct(40, 20, 30, a, b, listener->bytes());
  download->reset();
  ExpectNothingHeld();
  EXPECT_EQ(engine_->Stats().matrices.used, 0);
}

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
    canceller.join();
  }
  ExpectNothingHeld();
}

TEST_F(EngineTest, SlowReceiverHoldsItsWindowAndNoMore) {
  Make();
  JobSpec spec;
  spec.a.shape = Shape{1000, 10, gemm::DType::kF32};
  spec.a.source = FromGenerator{{1}};
  spec.b.shape = Shape{10, 1000, gemm::DType::kF32};
  spec.b.source = FromGenerator{{2}};
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

// Lets go of pieces on threads of its own, the last one first.
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

// A piece let go while the next is being fetched must not overtake it.
TEST_F(EngineTest, PiecesStayInOrderHoweverTheyAreLetGo) {
  Make();
  JobSpec spec;
  spec.a.shape = Shape{1000, 4, gemm::DType::kF32};
  spec.a.source = FromGenerator{{1}};
  spec.b.shape = Shape{4, 1000, gemm::DType::kF32};
  spec.b.source = FromGenerator{{2}};
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

TEST_F(EngineTest, DeadlinesPassInTransferAndInTheQueue) {
  EngineOptions options = SmallOptions();
  options.streams_per_device = 1;
  Make(options);
  JobSpec in_transfer = Product(10, 10, 10);
  in_transfer.deadline = absl::Now() + absl::Milliseconds(20);
  auto waiting = std::make_shared<JobRecorder>();
  auto job = engine_->Admit(in_transfer, waiting);
  ASSERT_TRUE(job.ok());
  (*job)->Start();
  EXPECT_THAT(waiting->Wait().status().ToString(),
              HasSubstr("DEADLINE_EXCEEDED: the deadline passed in transfer"));

  JobSpec slow;
  slow.a.shape = slow.b.shape = Shape{700, 700, gemm::DType::kF32};
  slow.a.source = slow.b.source = FromGenerator{{1}};
  slow.kernel.name = "host_reference";
  JobSpec queued = slow;
  auto running = std::make_shared<JobRecorder>(), late = std::make_shared<JobRecorder>();
  auto first = engine_->Admit(slow, running);
  queued.deadline = absl::Now() + absl::Milliseconds(40);  // well within `slow`
  auto second = engine_->Admit(queued, late);
  ASSERT_TRUE(first.ok() && second.ok());
  (*first)->Start();
  (*second)->Start();
  EXPECT_THAT(late->Wait().status().ToString(), HasSubstr("the deadline passed in the queue"));
  EXPECT_TRUE(running->Wait().ok());
  ExpectNothingHeld();
  queued.deadline = absl::Now();
  EXPECT_EQ(engine_->Admit(queued, late).status().code(), absl::StatusCode::kDeadlineExceeded);
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

TEST_F(EngineTest, MatrixExpiresAfterItsLastUse) {
  Make();
  ASSERT_TRUE(
      Put({2, 2, gemm::DType::kF32}, RandomFloats(4, 1), {"brief", absl::Milliseconds(60)}).ok());
  EXPECT_EQ(engine_->ListMatrices("br", 10, "")->matrices.size(), 1u);
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (engine_->Stats().matrices.used != 0 && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(engine_->ListMatrices("", 10, "")->matrices.size(), 0u);
  ExpectNothingHeld();
}

TEST_F(EngineTest, JobsGoToTheDeviceThatHoldsTheirOperands) {
  EngineOptions options = SmallOptions();
  options.devices = "host:4";
  Make(options);
  UploadSpec put;
  put.shape = {8, 8, gemm::DType::kF32};
  put.generator = gemm::GeneratorSpec{1};
  put.device = "host:2";
  put.keep.name = "here";
  UploadRecorder uploaded, elsewhere;
  auto upload = engine_->BeginUpload(put, uploaded.done());
  ASSERT_TRUE(upload.ok()) << upload.status();
  (*upload)->Start();
  ASSERT_TRUE(uploaded.Wait().ok());
  JobSpec spec;
  spec.a.source = spec.b.source = FromResident{{"", "here"}};
  auto recorder = std::make_shared<JobRecorder>();
  auto job = engine_->Admit(spec, recorder);
  ASSERT_TRUE(job.ok()) << job.status();
  (*job)->Start();
  const absl::StatusOr<JobResult> result = recorder->Wait();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.device, "host:2");

  put.device = "host:1";
  put.keep.name = "there";
  auto other = engine_->BeginUpload(put, elsewhere.done());
  ASSERT_TRUE(other.ok());
  (*other)->Start();
  ASSERT_TRUE(elsewhere.Wait().ok());
  spec.b.source = FromResident{{"", "there"}};
  EXPECT_THAT(engine_->Admit(spec, recorder).status().ToString(),
              HasSubstr("FAILED_PRECONDITION: the resident operands lie on different devices"));
  put.device = "cuda:7";
  EXPECT_THAT(engine_->BeginUpload(put, elsewhere.done()).status().ToString(),
              HasSubstr("this server has host:0, host:1, host:2, host:3"));
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

TEST_F(EngineTest, ManyThreadsAtOnceGetTheirOwnProducts) {
  Make();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 20; ++i) {
        const int64_t m = 1 + (t * 37 + i * 11) % 200, n = 1 + (i * 29) % 150, k = 1 + i * 13;
        const std::vector<float> a = RandomFloats(m * k, t), b = RandomFloats(k * n, i);
        auto recorder = std::make_shared<JobRecorder>(i % 3);
        auto job = engine_->Admit(Product(m, n, k), recorder);
        ASSERT_TRUE(job.ok()) << job.status();
        (*job)->Start();
        Send(**job, Role::kA, a, 10000);
        if (i % 7 == 3) {
          (*job)->Cancel(absl::CancelledError("by the test"));
        } else {
          Send(**job, Role::kB, b, 30000);
        }
        while (i % 3 != 0 && i % 7 != 3 && recorder->bytes().size() < size_t(m * n * 4)) {
          absl::SleepFor(absl::Microseconds(100));
        }
        recorder->Release();
        const absl::StatusOr<JobResult> result = recorder->Wait();
        EXPECT_EQ(result.ok(), i % 7 != 3) << result.status();
        if (result.ok()) ExpectProduct(m, n, k, a, b, recorder->bytes());
        EXPECT_FALSE(recorder->misused());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectNothingHeld();
}

}  // namespace
}  // namespace gemmd
