// An engine that loses a device: its matrices, its jobs, its end.
#include <gmock/gmock.h>

#include <string>

#include "gemm/problem.h"
#include "tests/engine/fault_fixture.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kSize = 96;

class DeviceLossTest : public FaultTest {
 protected:
  Attempt BeginProduct(const std::string& a, const std::string& b) {
    JobSpec spec;
    spec.a = Resident(a);
    spec.b = Resident(b);
    return Begin(spec, WholeProduct(kSize, kSize, kSize, 1, 2));
  }
  void AwaitLoss(size_t i, int64_t lost) {
    ASSERT_NO_FATAL_FAILURE(Await([&] { return StatsOf(i).loss.matrices_lost == lost; }));
  }
};

TEST_F(DeviceLossTest, AKernelThatHangsEndsItsJobAndTheErrorSaysWhy) {
  Make(TwoFaultyDevices());
  const std::string a = PutWhole(kSize, kSize, 1, 0), b = PutWhole(kSize, kSize, 2, 0);
  device(0).Inject({Fault::kHung, Operation::kLaunch});
  Attempt hangs = BeginProduct(a, b);
  Attempt behind = BeginProduct(a, b);
  ASSERT_NO_FATAL_FAILURE(Await([&] { return device(0).hung(); }));
  EXPECT_TRUE(StatsOf(0).health.ok()) << "not before its time";
  LetHangsTimeOut();
  const absl::Status status = End(hangs), next = End(behind);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("device host:0 is lost"), HasSubstr("--job-timeout")));
  // Where it came late, it was sent to the other device, with copies of both.
  EXPECT_TRUE(next.ok() || next == status) << next;
  EXPECT_EQ(StatsOf(0).loss.hangs, 1);
  EXPECT_EQ(StatsOf(1).loss.hangs, 0);
}

TEST_F(DeviceLossTest, AGeneratorThatHangsIsNoticedToo) {
  Make(TwoFaultyDevices());
  device(0).Inject({Fault::kHung, Operation::kGenerate});
  UploadSpec spec;
  spec.shape = {kSize, kSize, gemm::DType::kF32};
  spec.generator = gemm::GeneratorSpec{};
  spec.device = Name(0);
  UploadRecorder recorder;
  auto upload = engine_->BeginUpload(spec, recorder.done());
  ASSERT_TRUE(upload.ok()) << upload.status();
  (*upload)->Start();
  ASSERT_NO_FATAL_FAILURE(Await([&] { return device(0).hung(); }));
  LetHangsTimeOut();
  EXPECT_TRUE(absl::IsUnavailable(recorder.Wait(kPatience).status()));
  ExpectAllBack();
}

// A caller that gives up does not hide that its kernel hangs.
TEST_F(DeviceLossTest, AHangIsNoticedAfterItsJobWasCancelled) {
  Make(TwoFaultyDevices());
  const std::string a = PutWhole(kSize, kSize, 1, 0), b = PutWhole(kSize, kSize, 2, 0);
  device(0).Inject({Fault::kHung, Operation::kLaunch});
  Attempt hangs = BeginProduct(a, b);
  ASSERT_NO_FATAL_FAILURE(Await([&] { return device(0).hung(); }));
  hangs.job->Cancel(absl::CancelledError("by the test"));
  EXPECT_TRUE(absl::IsCancelled(End(hangs)));
  LetHangsTimeOut();
  ASSERT_NO_FATAL_FAILURE(Await([&] { return !StatsOf(0).health.ok(); }));
  ExpectAllBack();
}

// A small job that waits behind a large one does not hang.
TEST_F(DeviceLossTest, AJobGetsTheTimeOfTheLargestThatIsUnderWay) {
  EngineOptions options = TwoFaultyDevices();
  options.devices = "faulty:1";  // so that nothing goes elsewhere
  options.streams_per_device = 8;
  options.device_memory_bytes = 64 * kMiB;
  options.job_timeout = absl::Minutes(1);
  Make(options);
  const std::string a = PutWhole(kSize, kSize, 1, 0), b = PutWhole(kSize, kSize, 2, 0);
  // Eight times 2e8 operations at 1e7 a second: 160 s more.
  const std::string large = PutWhole(464, 464, 1, 0);
  device(0).Inject({Fault::kHung, Operation::kLaunch, 0});
  device(0).Inject({Fault::kHung, Operation::kLaunch, 0});
  static const std::vector<float> unknown;
  JobSpec spec;
  spec.a = spec.b = Resident(large);
  Attempt first = Begin(spec, unknown);
  Attempt second = BeginProduct(a, b);
  ASSERT_NO_FATAL_FAILURE(Await([&] { return device(0).struck() == 2; }));
  for (int i = 0; i < 2; ++i) {
    clock_.Jump(absl::Seconds(70));
    absl::SleepFor(absl::Milliseconds(300));  // several looks at the devices
  }
  EXPECT_TRUE(StatsOf(0).health.ok());
  device(0).Release();
  EXPECT_TRUE(End(first).ok());
  EXPECT_TRUE(End(second).ok());
}

TEST_F(DeviceLossTest, AJobOnAQuickStreamEndsToo) {
  EngineOptions options = TwoFaultyDevices();
  options.quick_streams = 1;
  Make(options);
  const std::string a = PutWhole(kSize, kSize, 1, 0), b = PutWhole(kSize, kSize, 2, 0);
  // Too large for the quick stream. It keeps the other one.
  const std::string large = PutWhole(300, 300, 1, 0);
  device(0).Inject({Fault::kHung, Operation::kLaunch});
  device(0).Inject({Fault::kHung, Operation::kLaunch});
  static const std::vector<float> unknown;
  JobSpec spec;
  spec.a = spec.b = Resident(large);
  Attempt slow = Begin(spec, unknown);
  ASSERT_NO_FATAL_FAILURE(Await([&] { return device(0).awaited_hangs() == 1; }));
  Attempt quick = BeginProduct(a, b);
  // A Notify that comes after the loss is told of it by itself.
  ASSERT_NO_FATAL_FAILURE(Await([&] { return device(0).awaited_hangs() == 2; }));
  device(0).Break();
  for (Attempt* attempt : {&slow, &quick}) {
    const absl::Status status = End(*attempt);
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("device host:0 is lost"));
  }
  ExpectAllBack();
}

TEST_F(DeviceLossTest, WithoutJobTimeoutNothingIsGivenUp) {
  EngineOptions options = TwoFaultyDevices();
  options.job_timeout = absl::ZeroDuration();
  Make(options);
  const std::string a = PutWhole(kSize, kSize, 1, 0), b = PutWhole(kSize, kSize, 2, 0);
  device(0).Inject({Fault::kHung, Operation::kLaunch});
  Attempt slow = BeginProduct(a, b);
  ASSERT_NO_FATAL_FAILURE(Await([&] { return device(0).hung(); }));
  for (int i = 0; i < 2; ++i) {
    clock_.Jump(absl::Hours(3));
    absl::SleepFor(absl::Milliseconds(300));  // several looks at the devices
  }
  EXPECT_TRUE(StatsOf(0).health.ok());
  device(0).Release();
  EXPECT_TRUE(End(slow).ok());
}

TEST_F(DeviceLossTest, AMatrixWhoseOnlyCopyWasThereIsNamedAsLost) {
  Make(TwoFaultyDevices());
  const std::string a = PutWhole(kSize, kSize, 1, 0, {.name = "weights"});
  device(0).Break();
  ASSERT_NO_FATAL_FAILURE(AwaitLoss(0, 1));
  for (const MatrixKey& key : {MatrixKey{.id = a}, MatrixKey{.name = "weights"}}) {
    JobSpec spec;
    spec.a.source = FromResident{key};
    spec.b = {Shape{kSize, kSize, gemm::DType::kF32}, FromPayload{}};
    const absl::Status status = engine_->Admit(spec, std::make_shared<JobRecorder>()).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(a), HasSubstr("weights"), HasSubstr("is lost"), HasSubstr("host:0"),
                      HasSubstr("put it again")));
  }
  EXPECT_TRUE(absl::IsNotFound(
      engine_
          ->Admit({.a = Resident("never"), .b = Resident("never")}, std::make_shared<JobRecorder>())
          .status()));
  EXPECT_TRUE(engine_->ListMatrices({})->matrices.empty());
  // Put again, under the same name.
  const std::string again = PutWhole(kSize, kSize, 1, 1, {.name = "weights"});
  const std::string b = PutWhole(kSize, kSize, 2, 1);
  JobSpec spec;
  spec.a.source = FromResident{{.name = "weights"}};
  spec.b = Resident(b);
  Attempt attempt = Begin(spec, WholeProduct(kSize, kSize, kSize, 1, 2));
  EXPECT_TRUE(End(attempt).ok());
  EXPECT_EQ(WrongBits(attempt), 0);
}

TEST_F(DeviceLossTest, AMatrixWithAReplicaElsewhereStays) {
  Make(TwoFaultyDevices());
  // One of two equal operands has a replica after a product. The report says which one.
  const std::string a = PutWhole(kSize, kSize, 1, 0, {.name = "a"});
  const std::string b = PutWhole(kSize, kSize / 2, 2, 1, {.name = "b"});
  const std::vector<float>& product = WholeProduct(kSize, kSize / 2, kSize, 1, 2);
  JobSpec spec;
  spec.a = Resident(a);
  spec.b = Resident(b);
  Attempt first = Begin(spec, product);
  ASSERT_TRUE(End(first).ok());
  ASSERT_GT(StatsOf(0).replicas.bytes, 0) << "b was copied to the device of a";
  device(1).Break();
  ASSERT_NO_FATAL_FAILURE(Await([&] { return StatsOf(1).loss.matrices_moved == 1; }));
  EXPECT_EQ(StatsOf(1).loss.matrices_lost, 0);
  const auto page = engine_->ListMatrices({});
  ASSERT_EQ(page->matrices.size(), 2u);
  for (const MatrixRecord& matrix : page->matrices) EXPECT_EQ(matrix.device, "host:0");
  EXPECT_EQ(StatsOf(0).replicas.bytes, 0) << "it is no replica any more";
  spec.b.source = FromResident{{.name = "b"}};
  Attempt second = Begin(spec, product);
  const absl::Status status = End(second);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(WrongBits(second), 0);
  DeleteAll();
  ExpectAllBack();
}

TEST_F(DeviceLossTest, ReplicasOnTheLostDeviceGoAndTheirMatricesStay) {
  Make(TwoFaultyDevices());
  const std::string a = PutWhole(kSize, kSize, 1, 0);
  const std::string b = PutWhole(kSize, kSize / 2, 2, 1);
  JobSpec spec;
  spec.a = Resident(a);
  spec.b = Resident(b);
  Attempt first = Begin(spec, WholeProduct(kSize, kSize / 2, kSize, 1, 2));
  ASSERT_TRUE(End(first).ok());
  device(0).Break();
  ASSERT_NO_FATAL_FAILURE(AwaitLoss(0, 1));
  EXPECT_EQ(StatsOf(0).replicas.bytes, 0);
  ASSERT_EQ(engine_->ListMatrices({})->matrices.size(), 1u);
  EXPECT_EQ(engine_->ListMatrices({})->matrices[0].id, b);
  DeleteAll();
  ExpectAllBack();
}

// A product whose operand comes from the device that is lost ends; its own device goes on.
TEST_F(DeviceLossTest, ACopyFromTheLostDeviceEndsItsJobAlone) {
  for (const bool peers : {false, true}) {
    FaultyDevice::peers = peers;
    Make(TwoFaultyDevices());
    const std::string a = PutWhole(kSize, kSize, 1, 0);
    const std::string b = PutWhole(kSize, kSize / 2, 2, 1);
    // The copy waits on the device that is not lost.
    device(0).Inject({Fault::kHung, peers ? Operation::kPeerCopy : Operation::kUpload});
    JobSpec spec;
    spec.a = Resident(a);
    spec.b = Resident(b);
    Attempt copies = Begin(spec, WholeProduct(kSize, kSize / 2, kSize, 1, 2));
    ASSERT_NO_FATAL_FAILURE(Await([&] { return device(0).hung(); }));
    device(1).Break();
    device(0).Release();
    const absl::Status status = End(copies);
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("host:1"));
    EXPECT_TRUE(StatsOf(0).health.ok());
    ASSERT_NO_FATAL_FAILURE(AwaitLoss(1, 1));
    const std::string again = PutWhole(kSize, kSize / 2, 2, 0);
    spec.b = Resident(again);
    Attempt second = Begin(spec, WholeProduct(kSize, kSize / 2, kSize, 1, 2));
    EXPECT_TRUE(End(second).ok());
    DeleteAll();
    ExpectAllBack();
    engine_.reset();
  }
}

TEST_F(DeviceLossTest, WithNoneLeftNothingIsTakenAndHealthSaysSo) {
  Make(TwoFaultyDevices());
  device(0).Break();
  EXPECT_TRUE(engine_->Health().ok());
  device(1).Break();
  EXPECT_TRUE(absl::IsUnavailable(engine_->Health()));
  const absl::Status refused =
      engine_->Admit(Product(4, 4, 4), std::make_shared<JobRecorder>()).status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  UploadSpec spec;
  spec.shape = {4, 4, gemm::DType::kF32};
  EXPECT_TRUE(absl::IsUnavailable(engine_->BeginUpload(spec, [](auto) {}).status()));
}

// The process can end in time, though the kernel does not: its memory stays behind.
TEST_F(DeviceLossTest, AnEngineEndsUnderAKernelThatHangs) {
  Make(TwoFaultyDevices());
  const std::string a = PutWhole(kSize, kSize, 1, 0), b = PutWhole(kSize, kSize, 2, 0);
  device(0).Inject({Fault::kHung, Operation::kLaunch});
  Attempt hangs = BeginProduct(a, b);
  ASSERT_NO_FATAL_FAILURE(Await([&] { return device(0).hung(); }));
  LetHangsTimeOut();
  EXPECT_TRUE(absl::IsUnavailable(End(hangs)));
  FaultyDevice& left = device(0);
  engine_.reset();
  ASSERT_TRUE(Engine::LeftWorkBehind());
  left.Release();  // it is still there
  ASSERT_NO_FATAL_FAILURE(Await([&] { return left.Idle(); }));
}

TEST_F(DeviceLossTest, AllThatWaitsForItsPayloadEnds) {
  Make(TwoFaultyDevices());
  const std::string a = PutWhole(kSize, kSize, 1, 0);
  JobSpec spec;
  spec.a = Resident(a);
  spec.b = {Shape{kSize, kSize, gemm::DType::kF32}, FromPayload{}};
  Attempt job = Begin(spec, Whole(1, 1, 1));
  UploadSpec upload_spec;
  upload_spec.shape = {kSize, kSize, gemm::DType::kF32};
  upload_spec.device = Name(0);
  UploadRecorder upload_recorder;
  auto upload = engine_->BeginUpload(upload_spec, upload_recorder.done());
  ASSERT_TRUE(upload.ok());
  (*upload)->Start();
  device(0).Break();
  EXPECT_TRUE(absl::IsUnavailable(End(job)));
  EXPECT_TRUE(absl::IsUnavailable(upload_recorder.Wait(kPatience).status()));
  ExpectAllBack();
}

}  // namespace
}  // namespace gemmd
