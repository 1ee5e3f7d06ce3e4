// The engine on host devices: uploads that fail beside others, and matrices drawn on it.
#include <gmock/gmock.h>

#include <atomic>
#include <string>
#include <thread>

#include "tests/engine/engine_fixture.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

class EngineUploadTest : public EngineTest {
 protected:
  static UploadSpec Drawn(gemm::DType type) {
    UploadSpec spec;
    spec.shape = {16, 16, type};
    spec.generator = gemm::GeneratorSpec{.seed = 1};
    return spec;
  }

  // How the upload ended, whether it was refused at once or later. DEADLINE_EXCEEDED
  // where it never does.
  absl::StatusOr<UploadResult> Run(const UploadSpec& spec, absl::string_view bytes = "") {
    auto recorder = std::make_shared<UploadRecorder>();
    auto upload = engine_->BeginUpload(
        spec, [recorder, done = recorder->done()](absl::StatusOr<UploadResult> result) mutable {
          done(std::move(result));
        });
    if (!upload.ok()) return upload.status();
    (*upload)->Start();
    if (!bytes.empty()) {
      const uint64_t offset = spec.range.has_value() ? spec.range->offset : 0;
      (*upload)->Append(offset, absl::Cord(bytes), [] {});
      (*upload)->EndOfPayload();
    }
    return recorder->Wait(absl::Seconds(10));
  }
};

TEST_F(EngineUploadTest, ATypeThatCannotBeDrawnIsRefusedBeforeAnythingIsReserved) {
  Make();
  UploadRecorder never_told;
  const auto upload = engine_->BeginUpload(Drawn(gemm::DType::kS32), never_told.done());
  EXPECT_EQ(upload.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(upload.status().message()), HasSubstr("generator: dtype s32"));
  JobSpec product = DrawnProduct(8, 8, 8);
  product.b.shape->type = gemm::DType::kS32;
  const auto job = engine_->Admit(product, std::make_shared<JobRecorder>());
  EXPECT_EQ(job.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(job.status().message()), HasSubstr("b.generator: dtype s32"));
  ExpectNothingHeld();
}

// One caller's error must not become another's, and memory that was never written must not be
// served.
TEST_F(EngineUploadTest, AnErrorBelongsToTheUploadThatMadeIt) {
  Make();
  constexpr int kThreads = 4;
  constexpr int kRuns = 2500;
  std::atomic<int> wrongly_complete{0}, wrongly_failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, bad = i % 2 == 0] {
      for (int run = 0; run < kRuns; ++run) {
        if (bad) {
          const auto result = Run(Drawn(gemm::DType::kS32));
          wrongly_complete += result.ok();
          if (result.ok()) engine_->DeleteMatrix({.id = result->matrix.id}).IgnoreError();
        } else {
          UploadSpec spec;
          spec.shape = {16, 16, gemm::DType::kS8};
          const auto result = Run(spec, std::string(256, 'x'));
          wrongly_failed += !result.ok();
          if (result.ok()) engine_->DeleteMatrix({.id = result->matrix.id}).IgnoreError();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrongly_complete.load(), 0) << "of " << kThreads / 2 * kRuns;
  EXPECT_EQ(wrongly_failed.load(), 0) << "of " << kThreads / 2 * kRuns;
  ExpectNothingHeld();
}

// A generator on the host takes a stream of its own, and no upload's.
TEST_F(EngineUploadTest, AMatrixBeingDrawnHoldsUpNoUpload) {
  Make();
  UploadSpec slow;
  slow.shape = {2000, 2000, gemm::DType::kF32};
  slow.generator = gemm::GeneratorSpec{.distribution = gemm::Distribution::kNormal};
  std::atomic<bool> drawn{false};
  UploadRecorder recorder;
  auto drawing = engine_->BeginUpload(
      slow, [&drawn, done = recorder.done()](absl::StatusOr<UploadResult> result) mutable {
        drawn = true;
        done(std::move(result));
      });
  ASSERT_TRUE(drawing.ok()) << drawing.status();
  (*drawing)->Start();
  UploadSpec quick;
  quick.shape = {16, 16, gemm::DType::kS8};
  const auto landed = Run(quick, std::string(256, 'x'));
  ASSERT_TRUE(landed.ok()) << landed.status();
  EXPECT_FALSE(drawn);
  const auto done = recorder.Wait();
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_TRUE(done->complete);
  EXPECT_EQ(done->bytes, 0u);
}

TEST_F(EngineUploadTest, ADrawingThatIsCancelledInTheQueueLeavesNothing) {
  EngineOptions options = OneStream();
  options.max_queued_jobs = 1;
  Make(options);
  UploadSpec spec;
  spec.shape = {2000, 2000, gemm::DType::kF32};
  spec.generator = gemm::GeneratorSpec{.distribution = gemm::Distribution::kNormal};
  UploadRecorder running, waiting, refused;
  auto first = engine_->BeginUpload(spec, running.done());
  spec.shape = {16, 16, gemm::DType::kF32};
  auto second = engine_->BeginUpload(spec, waiting.done());
  auto third = engine_->BeginUpload(spec, refused.done());
  ASSERT_TRUE(first.ok() && second.ok() && third.ok());
  (*first)->Start();
  (*second)->Start();
  (*third)->Start();
  EXPECT_EQ(refused.Wait().status().code(), absl::StatusCode::kResourceExhausted);
  (*second)->Cancel(absl::CancelledError("by the test"));
  EXPECT_TRUE(absl::IsCancelled(waiting.Wait().status()));
  EXPECT_EQ(engine_->Stats().queued_jobs.used, 0);
  const auto drawn = running.Wait();
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  EXPECT_TRUE(engine_->DeleteMatrix({.id = drawn->matrix.id}).ok());
  ExpectNothingHeld();
}

TEST_F(EngineUploadTest, EveryAnswerOfASplitUploadTellsWhenTheMatrixGoes) {
  Make();
  UploadSpec spec;
  spec.shape = {16, 16, gemm::DType::kS8};
  spec.upload_id = "timed";
  spec.keep.ttl = absl::Minutes(5);
  const absl::Time before = absl::Now();
  for (const uint64_t offset : {0, 128}) {
    spec.range = ByteSpan{offset, 128};
    const auto result = Run(spec, std::string(128, 'x'));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->complete, offset == 128);
    ASSERT_TRUE(result->matrix.expires.has_value()) << "from byte " << offset;
    EXPECT_GE(*result->matrix.expires, before + absl::Minutes(5));
  }
}

TEST_F(EngineUploadTest, AMatrixWithoutANameHasTheTimeOfSuch) {
  EngineOptions options;
  options.unnamed_ttl = absl::Minutes(5);
  Make(options);
  const auto expires = [this](const KeepSpec& keep) {
    UploadSpec spec;
    spec.shape = {16, 16, gemm::DType::kS8};
    spec.keep = keep;
    const auto result = Run(spec, std::string(256, 'x'));
    EXPECT_TRUE(result.ok()) << result.status();
    return result->matrix.expires;
  };
  const absl::Time before = absl::Now();
  const std::optional<absl::Time> unnamed = expires({});
  ASSERT_TRUE(unnamed.has_value());
  EXPECT_GE(*unnamed, before + absl::Minutes(5));
  EXPECT_LE(*unnamed, absl::Now() + absl::Minutes(5));
  EXPECT_GE(expires({.ttl = absl::Hours(1)}), before + absl::Hours(1)) << "its own";
  EXPECT_EQ(expires({.name = "x"}), std::nullopt);
}

TEST_F(EngineUploadTest, ZeroIsNoTimeToLive) {
  EngineOptions options;
  options.unnamed_ttl = absl::ZeroDuration();
  Make(options);
  UploadSpec spec;
  spec.shape = {16, 16, gemm::DType::kS8};
  const auto result = Run(spec, std::string(256, 'x'));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->matrix.expires, std::nullopt);
}

// A call that joins a split upload just as another one fails must be told. One that
// comes later begins an upload of its own, which the last call here fails.
TEST_F(EngineUploadTest, EveryCallOfAFailingSplitUploadEnds) {
  Make();
  constexpr int kRuns = 3000;
  constexpr int kCalls = 4;
  int never_ended = 0;
  for (int run = 0; run < kRuns && never_ended == 0; ++run) {
    std::atomic<int> waiting{0};
    std::vector<std::shared_ptr<UploadRecorder>> ends(kCalls + 1);
    std::vector<std::shared_ptr<Upload>> uploads(kCalls + 1);  // held, as a caller does
    const auto call = [&](int i, size_t bytes) {
      UploadSpec spec;
      spec.shape = {16, 20, gemm::DType::kS8};
      spec.upload_id = std::to_string(run);
      spec.range = ByteSpan{static_cast<uint64_t>(i) * 64, 64};
      auto recorder = std::make_shared<UploadRecorder>();
      auto upload = engine_->BeginUpload(
          spec, [recorder, done = recorder->done()](absl::StatusOr<UploadResult> result) mutable {
            done(std::move(result));
          });
      if (!upload.ok()) return;
      ends[i] = recorder;
      uploads[i] = *upload;
      (*upload)->Start();
      if (bytes > 0)
        (*upload)->Append(spec.range->offset, absl::Cord(std::string(bytes, 'x')), [] {});
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < kCalls; ++i) {
      threads.emplace_back([&, i] {
        ++waiting;
        while (waiting < kCalls) std::this_thread::yield();
        call(i, i == 0 ? 65 : 0);  // the first one brings too much
      });
    }
    for (std::thread& thread : threads) thread.join();
    call(kCalls, 65);
    for (const auto& end : ends) {
      if (end == nullptr) continue;  // refused
      const absl::Status status = end->Wait(absl::Seconds(10)).status();
      ASSERT_FALSE(status.ok());
      never_ended += absl::IsDeadlineExceeded(status);
    }
  }
  EXPECT_EQ(never_ended, 0);
  ExpectNothingHeld();
  EXPECT_EQ(engine_->Stats().matrices.used, 0);
}

}  // namespace
}  // namespace gemmd
