// Products that replace a matrix, also one of their own operands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "tests/engine/engine_fixture.h"

namespace gemmd {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class EngineNamesTest : public EngineTest {
 protected:
  static constexpr int64_t kSide = 8;
  static constexpr Shape kShape{kSide, kSide, gemm::DType::kF32};

  EngineNamesTest() { Make(); }

  // Every element of W is `value`.
  MatrixRecord PutW(float value, bool replace = false) {
    const absl::StatusOr<UploadResult> put =
        Put(kShape, std::vector<float>(kSide * kSide, value), {.name = "W", .replace = replace});
    EXPECT_TRUE(put.ok()) << put.status();
    return put.ok() ? put->matrix : MatrixRecord();
  }
  std::vector<float> GetW() {
    auto listener = std::make_shared<DownloadRecorder>();
    auto download = engine_->BeginDownload({.key = {.name = "W"}}, listener);
    EXPECT_TRUE(download.ok()) << download.status();
    if (!download.ok()) return {};
    (*download)->Start();
    EXPECT_TRUE(listener->Wait().ok());
    const std::vector<std::byte> bytes = listener->bytes();
    std::vector<float> elements(bytes.size() / sizeof(float));
    std::memcpy(elements.data(), bytes.data(), bytes.size());
    return elements;
  }
  // W = A W, where A is sent.
  static JobSpec Update(std::optional<uint64_t> if_version = std::nullopt) {
    JobSpec spec = Product(kSide, kSide, kSide);
    spec.b = {.shape = std::nullopt, .source = FromResident{{.name = "W"}}};
    spec.keep_result = KeepSpec{.name = "W", .replace = true, .if_version = if_version};
    return spec;
  }
  static void SendA(Job& job, float value) {
    Send(job, Role::kA, std::vector<float>(kSide * kSide, value), 1000);
  }
  std::shared_ptr<Job> Begin(JobSpec spec) {
    recorder_ = std::make_shared<JobRecorder>();
    auto job = engine_->Admit(std::move(spec), recorder_);
    EXPECT_TRUE(job.ok()) << job.status();
    if (!job.ok()) return nullptr;
    (*job)->Start();
    return *job;
  }
  // Expects that nothing but W is held.
  void ExpectOneMatrix() {
    ExpectNothingHeld(Arena::kAlignment);
    EXPECT_EQ(engine_->Stats().matrices.used, 1);
  }

  std::shared_ptr<JobRecorder> recorder_;
};

TEST_F(EngineNamesTest, AProductMayReplaceItsOwnOperand) {
  const MatrixRecord old = PutW(1);
  const std::shared_ptr<Job> job = Begin(Update(old.version));
  ASSERT_NE(job, nullptr);
  EXPECT_THAT(GetW(), Each(1)) << "as long as the product is not there";
  SendA(*job, 2);
  const absl::StatusOr<JobResult> result = recorder_->Wait();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->kept.has_value());
  EXPECT_GT(result->kept->version, old.version);
  EXPECT_THAT(GetW(), Each(2 * kSide));
  ExpectOneMatrix();
}

TEST_F(EngineNamesTest, AProductWhoseOperandIsReplacedGoesOnWithIt) {
  PutW(1);
  const std::shared_ptr<Job> job = Begin(Update());
  ASSERT_NE(job, nullptr);
  PutW(100, /*replace=*/true);
  EXPECT_THAT(GetW(), Each(100));
  SendA(*job, 2);
  ASSERT_TRUE(recorder_->Wait().ok());
  EXPECT_THAT(GetW(), Each(2 * kSide)) << "a product of the first one, and the last to be added";
  ExpectOneMatrix();
}

TEST_F(EngineNamesTest, AProductThatFailsLeavesTheOldOne) {
  const MatrixRecord old = PutW(1);
  std::shared_ptr<Job> job = Begin(Update());
  ASSERT_NE(job, nullptr);
  job->Cancel(absl::CancelledError("the caller left"));
  EXPECT_EQ(recorder_->Wait().status().code(), absl::StatusCode::kCancelled);
  job = Begin(Update());
  ASSERT_NE(job, nullptr);
  job->EndOfPayload();
  EXPECT_EQ(recorder_->Wait().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(GetW(), Each(1));
  ExpectOneMatrix();
  EXPECT_EQ(engine_->DeleteMatrix({.name = "W"})->version, old.version);
}

TEST_F(EngineNamesTest, AReleasedOperandThatIsReplacedStaysUntilThen) {
  const MatrixRecord old = PutW(1);
  JobSpec spec = Update(old.version);
  std::get<FromResident>(spec.b.source).release = true;
  std::shared_ptr<Job> job = Begin(spec);
  ASSERT_NE(job, nullptr);
  EXPECT_THAT(GetW(), Each(1)) << "while the product is computed";
  job->EndOfPayload();
  EXPECT_FALSE(recorder_->Wait().ok());
  EXPECT_THAT(GetW(), Each(1)) << "the product failed";

  job = Begin(spec);
  ASSERT_NE(job, nullptr);
  SendA(*job, 2);
  const absl::StatusOr<JobResult> result = recorder_->Wait();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(GetW(), Each(2 * kSide));
  ExpectOneMatrix();
}

TEST_F(EngineNamesTest, AProductEndsWithAnErrorWhereTheVersionChangedMeanwhile) {
  const MatrixRecord old = PutW(1);
  for (const bool streams : {true, false}) {
    const MatrixRecord before = engine_->ListMatrices({})->matrices.at(0);
    JobSpec spec = Update(before.version);
    spec.stream_result = streams;
    const std::shared_ptr<Job> job = Begin(std::move(spec));
    ASSERT_NE(job, nullptr);
    PutW(100, /*replace=*/true);
    SendA(*job, 2);
    const absl::Status ended = recorder_->Wait().status();
    EXPECT_EQ(ended.code(), absl::StatusCode::kAborted);
    EXPECT_THAT(ended.message(), HasSubstr("keep.if_version"));
    EXPECT_FALSE(recorder_->misused());
    EXPECT_THAT(GetW(), Each(100));
    ExpectOneMatrix();
  }
  EXPECT_EQ(engine_->Admit(Update(old.version), recorder_).status().code(),
            absl::StatusCode::kAborted)
      << "said before any payload is sent";
  ExpectOneMatrix();
}

TEST_F(EngineNamesTest, AnOperandMayAskForAVersionAndAnOwner) {
  const MatrixRecord old = PutW(1);
  PutW(2, /*replace=*/true);
  JobSpec spec = Update();
  std::get<FromResident>(spec.b.source).key.version = old.version;
  const absl::Status version = engine_->Admit(spec, recorder_).status();
  EXPECT_EQ(version.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(version.message(), HasSubstr("b: version is "));
  std::get<FromResident>(spec.b.source).key = {.name = "W", .owner = "somebody"};
  EXPECT_EQ(engine_->Admit(spec, recorder_).status().code(), absl::StatusCode::kNotFound);
  ExpectOneMatrix();
}

TEST_F(EngineNamesTest, AnUploadThatIsCancelledLeavesTheOldOne) {
  PutW(1);
  UploadSpec spec;
  spec.shape = kShape;
  spec.keep = {.name = "W", .replace = true};
  UploadRecorder recorder;
  auto upload = engine_->BeginUpload(spec, recorder.done());
  ASSERT_TRUE(upload.ok()) << upload.status();
  (*upload)->Start();
  (*upload)->Append(0, AsCord(std::vector<float>(kSide, 5)), [] {});
  (*upload)->Cancel(absl::CancelledError("the caller left"));
  EXPECT_EQ(recorder.Wait().status().code(), absl::StatusCode::kCancelled);
  upload->reset();
  EXPECT_THAT(GetW(), Each(1));
  ExpectOneMatrix();
}

}  // namespace
}  // namespace gemmd
