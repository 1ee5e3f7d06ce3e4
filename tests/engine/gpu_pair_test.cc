// Two CUDA devices: copies from one to the other, and the engine's replicas on them.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "server/engine/device/device_kinds.h"
#include "tests/engine/device_suite.h"
#include "tests/engine/engine_fixture.h"

namespace gemmd {
namespace {

class GpuPairTest : public EngineTest {
 protected:
  void SetUp() override {
    if (DeviceCount("cuda") < 2) GTEST_SKIP() << "skipped: fewer than two CUDA devices";
  }

  static EngineOptions Pair() {
    EngineOptions options = SmallOptions();
    options.devices = "cuda:0,1";
    options.device_memory_bytes = 2 * kGiB;
    return options;
  }

  std::string PutDrawn(const Shape& shape, uint64_t seed, const std::string& device) {
    UploadSpec spec;
    spec.shape = shape;
    spec.generator = gemm::GeneratorSpec{.seed = seed, .low_or_mean = -1, .high_or_stddev = 1};
    spec.device = device;
    UploadRecorder recorder;
    auto upload = engine_->BeginUpload(spec, recorder.done());
    EXPECT_TRUE(upload.ok()) << upload.status();
    if (!upload.ok()) return "";
    (*upload)->Start();
    const auto result = recorder.Wait();
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->matrix.id : "";
  }

  std::shared_ptr<JobRecorder> Begin(const std::string& a, const std::string& b,
                                     std::shared_ptr<Job>* handle = nullptr) {
    JobSpec spec;
    spec.a.source = FromResident{{a, ""}};
    spec.b.source = FromResident{{b, ""}};
    auto recorder = std::make_shared<JobRecorder>();
    auto job = engine_->Admit(spec, recorder);
    EXPECT_TRUE(job.ok()) << job.status();
    if (!job.ok()) return nullptr;
    (*job)->Start();
    if (handle != nullptr) *handle = *job;
    return recorder;
  }
};

TEST_F(GpuPairTest, WhatCudaAllowsIsCopiedStraight) {
  auto devices = CreateDevices(Pair());
  ASSERT_TRUE(devices.ok()) << devices.status();
  Device& from = *(*devices)[0];
  Device& to = *(*devices)[1];
  if (!to.CanCopyFrom(from)) GTEST_SKIP() << "skipped: no peer access from cuda:0 to cuda:1";
  EXPECT_TRUE(to.CanCopyFrom(from));  // also when asked again
  EXPECT_EQ(from.CanCopyFrom(to), true);
  constexpr size_t kBytes = 1 << 20;
  auto source = from.memory().Allocate(kBytes);
  auto target = to.memory().Allocate(kBytes);
  ASSERT_TRUE(source.ok() && target.ok());
  const Pitched at_source{source->data(), 1, kBytes, kBytes};
  const Pitched at_target{target->data(), 1, kBytes, kBytes};
  std::vector<std::byte> sent(kBytes), got(kBytes);
  for (size_t i = 0; i < kBytes; ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 251);
  ASSERT_EQ(from.upload_stream().Upload(sent.data(), at_source, 0, kBytes), absl::OkStatus());
  ASSERT_EQ(Finish(from.upload_stream()), absl::OkStatus());
  ASSERT_EQ(to.upload_stream().CopyFrom(from, source->data(), target->data(), kBytes),
            absl::OkStatus());
  ASSERT_EQ(Finish(to.upload_stream()), absl::OkStatus());
  ASSERT_EQ(to.download_stream().Download(at_target, 0, kBytes, got.data()), absl::OkStatus());
  ASSERT_EQ(Finish(to.download_stream()), absl::OkStatus());
  EXPECT_EQ(got, sent);
}

TEST_F(GpuPairTest, OperandsOnBothGiveTheProduct) {
  Make(Pair());
  const bool peer = engine_->devices()[0]->CanCopyFrom(*engine_->devices()[1]);
  RecordProperty("peer", peer ? "yes" : "no");
  // B takes more than one piece of a peer copy, and its lines have gaps.
  const Shape a{6001, 5003, gemm::DType::kF32}, b{5003, 4001, gemm::DType::kF32};
  const std::string a0 = PutDrawn(a, 1, "cuda:0"), b1 = PutDrawn(b, 2, "cuda:1");
  const std::string b0 = PutDrawn(b, 2, "cuda:0");
  const auto together = Begin(a0, b0);
  ASSERT_NE(together, nullptr);
  const auto expected = together->Wait();
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_TRUE(expected->report.copies.empty());
  for (const bool reused : {false, true}) {
    const auto apart = Begin(a0, b1);
    ASSERT_NE(apart, nullptr);
    const auto result = apart->Wait();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->report.device, "cuda:0");
    ASSERT_EQ(result->report.copies.size(), 1u);
    EXPECT_EQ(result->report.copies[0].route, peer ? CopyRoute::kPeer : CopyRoute::kHost);
    EXPECT_EQ(result->report.copies[0].reused, reused);
    EXPECT_TRUE(apart->bytes() == together->bytes());
  }
}

TEST_F(GpuPairTest, CancelledCopiesGiveEverythingBack) {
  Make(Pair());
  const Shape shape{6000, 6000, gemm::DType::kF32};
  const std::string a = PutDrawn(shape, 1, "cuda:0"), b = PutDrawn(shape, 2, "cuda:1");
  for (int run = 0; run < 50; ++run) {
    std::shared_ptr<Job> job;
    const auto recorder = Begin(a, b, &job);
    ASSERT_NE(recorder, nullptr);
    absl::SleepFor(absl::Microseconds(100 * (run % 16)));
    job->Cancel(absl::CancelledError("by the test"));
    const absl::Status status = recorder->Wait().status();
    EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
  }
  const auto last = Begin(a, b);
  ASSERT_NE(last, nullptr);
  const absl::Status status = last->Wait().status();
  EXPECT_TRUE(status.ok()) << status;
  ASSERT_TRUE(engine_->DeleteMatrix({.id = a}).ok());
  ASSERT_TRUE(engine_->DeleteMatrix({.id = b}).ok());
  ExpectNothingHeld();
  const EngineStats stats = engine_->Stats();
  EXPECT_EQ(stats.devices[1].memory_bytes.used, 0);
  EXPECT_EQ(stats.devices[0].replicas.bytes + stats.devices[1].replicas.bytes, 0);
}

}  // namespace
}  // namespace gemmd
