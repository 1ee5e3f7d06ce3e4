// Jobs that share a launch, and an operation of it that fails, at each step: all of them hear of
// it, and nothing is left of any.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/engine/fault_fixture.h"

namespace gemmd {
namespace {

struct SharedFault {
  const char* name;
  Injection injection;
};

bool LosesDevice(const SharedFault& fault) {
  return fault.injection.fault == Fault::kSticky || fault.injection.fault == Fault::kHung;
}

// For the names of the tests.
void PrintTo(const SharedFault& fault, std::ostream* out) { *out << fault.name; }

class SharedLaunchFaults : public FaultTest, public ::testing::WithParamInterface<SharedFault> {
 protected:
  static constexpr int64_t kM = 16, kK = 32, kN = 24;
  static constexpr int kJobs = 6;
  static constexpr uint32_t kSeedB = 100;

  void SetUp() override {
    EngineOptions options = TwoFaultyDevices();
    options.max_coalesced_jobs = 8;
    // No room for copies: jobs stay on the device of their matrix, though it hangs.
    options.store_bytes = Shape{kK, kN, gemm::DType::kF32}.pitched_bytes();
    Make(options);
    b_ = PutWhole(kK, kN, kSeedB, 0);
    b_of_other_ = PutWhole(kK, kN, kSeedB, 1);
    ExpectAllBack(/*matrices=*/2);
    memory_ = StatsOf(0).memory_bytes.used;
  }

  // On the device of `b`: A is sent.
  Attempt BeginWith(const std::string& b, uint32_t seed) {
    JobSpec spec;
    spec.a = {Shape{kM, kK, gemm::DType::kF32}, FromPayload{}};
    spec.b = Resident(b);
    Attempt attempt = Begin(std::move(spec), WholeProduct(kM, kN, kK, seed, kSeedB));
    if (attempt.job != nullptr) {
      attempt.job->Append(Role::kA, 0, AsCord(Whole(kM, kK, seed)), [] {});
    }
    return attempt;
  }

  // Jobs that wait for the one stream of device 0, which `before` has while it hangs. The first of
  // them that gets it takes the others along, as nothing is known of how long any takes.
  std::vector<Attempt> BeginTogether(Attempt& before) {
    device(0).Inject({Fault::kHung, Operation::kLaunch});
    before = BeginWith(b_, 1);
    // By then all of its operations are on the stream.
    Await([&] { return device(0).awaited_hangs() == 1; });
    std::vector<Attempt> all;
    for (uint32_t i = 0; i < kJobs; ++i) all.push_back(BeginWith(b_, 2 + i));
    Await([&] { return StatsOf(0).queued_jobs == kJobs; });
    return all;
  }

  void ExpectServed(Attempt attempt) {
    const absl::Status status = End(attempt);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(WrongBits(attempt), 0);
  }

  std::string b_, b_of_other_;
  int64_t memory_ = 0;  // of device 0, for the matrices
};

TEST_P(SharedLaunchFaults, AreToldToEveryJobAndLeaveNothing) {
  const bool loses_device = LosesDevice(GetParam());
  Attempt before;
  std::vector<Attempt> all = BeginTogether(before);
  device(0).Inject(GetParam().injection);
  device(0).Release();
  if (GetParam().injection.fault == Fault::kHung) {
    ASSERT_NO_FATAL_FAILURE(Await([&] { return device(0).struck() == 2; }));
    ExpectServed(BeginWith(b_of_other_, 20));
    LetHangsTimeOut();
  }
  for (Attempt& one : all) {
    const absl::Status status = End(one);
    EXPECT_EQ(status.code(),
              loses_device ? absl::StatusCode::kUnavailable : absl::StatusCode::kInternal)
        << status;
  }
  EXPECT_EQ(device(0).struck(), 2) << "the hang, and one fault for all of them";
  if (loses_device) {
    End(before).IgnoreError();  // it may have ended before the loss
  } else {
    ExpectServed(std::move(before));
  }

  // Its holdings are back, and the device is lost, or as good as ever.
  EXPECT_EQ(StatsOf(0).health.ok(), !loses_device) << StatsOf(0).health;
  ExpectServed(BeginWith(b_of_other_, 21));
  device(0).Release();
  before = Attempt();
  all.clear();
  if (loses_device) {
    Attempt next = BeginWith(b_, 22);
    const absl::Status status = End(next);
    EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsDataLoss(status)) << status;
    ASSERT_NO_FATAL_FAILURE(Await([&] { return StatsOf(0).loss.matrices_lost == 1; }));
  } else {
    ExpectAllBack(/*matrices=*/2);
    ASSERT_NO_FATAL_FAILURE(Await([&] { return StatsOf(0).memory_bytes.used == memory_; }));
    // Whether these share a launch depends on how long those before took.
    for (uint32_t i = 0; i < kJobs; ++i) all.push_back(BeginWith(b_, 22 + i));
    for (Attempt& next : all) ExpectServed(std::move(next));
  }
  DeleteAll();
  ExpectAllBack();
}

// Six products are two launches of a library, of four and of two.
INSTANTIATE_TEST_SUITE_P(
    AtEachStep, SharedLaunchFaults,
    ::testing::Values(SharedFault{"UploadRefused", {Fault::kRefused, Operation::kUpload}},
                      SharedFault{"UploadLosesDevice", {Fault::kSticky, Operation::kUpload}},
                      SharedFault{"UploadHangs", {Fault::kHung, Operation::kUpload}},
                      SharedFault{"BeginNotRecorded", {Fault::kRefused, Operation::kRecord}},
                      SharedFault{"LaunchRefused", {Fault::kRefused, Operation::kLaunch}},
                      SharedFault{"SecondLaunchRefused", {Fault::kRefused, Operation::kLaunch, 1}},
                      SharedFault{"KernelFailsLate", {Fault::kFailedLate, Operation::kLaunch}},
                      SharedFault{"KernelLosesDevice", {Fault::kSticky, Operation::kLaunch}},
                      SharedFault{"KernelHangs", {Fault::kHung, Operation::kLaunch}},
                      SharedFault{"EndNotRecorded", {Fault::kRefused, Operation::kRecord, 1}},
                      SharedFault{"DownloadRefused", {Fault::kRefused, Operation::kDownload}},
                      SharedFault{"DownloadLosesDevice", {Fault::kSticky, Operation::kDownload}},
                      SharedFault{"DownloadHangs", {Fault::kHung, Operation::kDownload}}),
    [](const ::testing::TestParamInfo<SharedFault>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gemmd
