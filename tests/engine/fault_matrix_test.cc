// Each trouble of a device in each phase of a job. It checks the job itself, the next one on the
// device, another caller's on the other device, and all holdings afterwards.
#include <gmock/gmock.h>

#include <string>
#include <tuple>
#include <utility>

#include "tests/engine/fault_fixture.h"

namespace gemmd {
namespace {

enum class Phase { kPayload, kQueue, kRun, kCheck, kResult, kReplica };
enum class Trouble {
  kNoMemory,
  kSlowCopy,
  kFailingCopy,
  kLaunchError,
  kLateError,
  kStickyError,
  kHungKernel,
  kWrongBit
};

// The first operand is larger than the second, so that the second one moves.
constexpr int64_t kM = 400, kK = 400, kN = 384;
constexpr uint32_t kSeedA = 1, kSeedB = 2;

bool LosesDevice(Trouble trouble) {
  return trouble == Trouble::kStickyError || trouble == Trouble::kHungKernel;
}

class FaultMatrix : public FaultTest,
                    public ::testing::WithParamInterface<std::tuple<Phase, Trouble>> {
 protected:
  void SetUp() override {
    EngineOptions options = TwoFaultyDevices();
    // No room for a copy of A on device 1: its jobs wait on device 0, though that hangs.
    options.store_bytes = Shape{kM, kK, gemm::DType::kF32}.pitched_bytes() +
                          2 * Shape{kK, kN, gemm::DType::kF32}.pitched_bytes();
    Make(options);
    a_ = PutWhole(kM, kK, kSeedA, 0);
    b_elsewhere_ = PutWhole(kK, kN, kSeedB, 1);
    a_of_other_ = PutWhole(kM, kK, kSeedA, 1);
    ExpectAllBack(/*matrices=*/3);
  }

  static const std::vector<float>& Right() { return WholeProduct(kM, kN, kK, kSeedA, kSeedB); }

  // A product on device 0, whose second operand is sent, or lies on device 1.
  JobSpec ProductOnDevice0(bool sent) {
    JobSpec spec;
    spec.a = Resident(a_);
    spec.b = Resident(b_elsewhere_);
    if (sent) spec.b = {Shape{kK, kN, gemm::DType::kF32}, FromPayload{}};
    spec.receiver = NewReceiver();  // gets two blocks, and then one for each that it releases
    return spec;
  }
  static void SendB(Attempt& attempt, size_t from, size_t to) {
    if (attempt.job == nullptr) return;
    attempt.job->Append(Role::kB, from, AsCord(Whole(kK, kN, kSeedB)).Subcord(from, to - from),
                        [] {});
  }
  static constexpr size_t kBytesB = kK * kN * sizeof(float);

  // Takes the job to the phase, and lets it stay there until Proceed.
  void Reach(Phase phase) {
    if (phase == Phase::kQueue) {
      device(0).Inject({Fault::kHung, Operation::kLaunch});
      JobSpec spec;
      spec.a = Resident(a_);
      spec.b = {Shape{kK, 1, gemm::DType::kF32}, FromGenerator{{3}}};
      static const std::vector<float> unknown;
      before_ = Begin(spec, unknown);
      ASSERT_NO_FATAL_FAILURE(Await([&] { return device(0).struck() == 1; }));
    } else if (phase == Phase::kRun) {
      device(0).Inject({Fault::kHung, Operation::kLaunch});
    } else if (phase == Phase::kCheck) {
      device(0).Inject({Fault::kHung, Operation::kCheck});
    } else if (phase == Phase::kReplica) {
      device(0).Inject({Fault::kHung, Operation::kUpload});
    }
    JobSpec spec = ProductOnDevice0(phase != Phase::kReplica);
    if (phase == Phase::kCheck) spec.verify = Verify::kAlways;
    subject_ = Begin(std::move(spec), Right(), phase == Phase::kResult ? 1000 : 0);
    ASSERT_TRUE(subject_.refused.ok()) << subject_.refused;
    if (phase == Phase::kPayload) return SendB(subject_, 0, kBytesB / 2);
    if (phase != Phase::kReplica) SendB(subject_, 0, kBytesB);
    if (phase == Phase::kQueue) {
      ASSERT_NO_FATAL_FAILURE(Await([&] { return StatsOf(0).queued_jobs == 1; }));
    } else if (phase == Phase::kResult) {
      subject_.recorder->WaitForBytes(1);
    } else {
      ASSERT_NO_FATAL_FAILURE(Await([&] { return device(0).struck() == 1; }));
    }
  }

  void Strike(Phase phase, Trouble trouble) {
    switch (trouble) {
      case Trouble::kNoMemory:
        taken_ = device(0).TakeAllMemory();
        break;
      case Trouble::kSlowCopy:
        device(0).Inject({Fault::kSlow, Operation::kUpload});
        device(0).Inject({Fault::kSlow, Operation::kDownload});
        break;
      case Trouble::kFailingCopy:
        device(0).Inject({Fault::kRefused, NextCopy(phase)});
        break;
      case Trouble::kLaunchError:
        device(0).Inject({Fault::kRefused, Operation::kLaunch});
        break;
      case Trouble::kLateError:
        device(0).Inject({Fault::kFailedLate, Operation::kLaunch});
        break;
      case Trouble::kStickyError:
        device(0).Break();
        break;
      case Trouble::kHungKernel:
        // In the queue and while it runs, or is checked, something hangs already.
        if (phase != Phase::kQueue && phase != Phase::kRun && phase != Phase::kCheck) {
          device(0).Inject({Fault::kHung, Operation::kLaunch});
        }
        break;
      case Trouble::kWrongBit:
        device(0).Inject(
            {.fault = Fault::kWrongBit, .operation = Operation::kLaunch, .bit = 12345});
        break;
    }
  }
  // The next copy of the job in this phase, on device 0.
  static Operation NextCopy(Phase phase) {
    return phase == Phase::kPayload ? Operation::kUpload : Operation::kDownload;
  }

  // The job goes on as it would without the trouble.
  void Proceed(Phase phase) {
    if (phase == Phase::kPayload) SendB(subject_, kBytesB / 2, kBytesB);
    if (phase == Phase::kResult) subject_.recorder->Release();
    device(0).Release();
  }

  Attempt BeginNext() {
    Attempt next = Begin(ProductOnDevice0(/*sent=*/true), Right());
    SendB(next, 0, kBytesB);
    return next;
  }

  // The job, and the next one on the device, to their ends.
  void Finish(Phase phase, Trouble trouble, absl::Status* subject, absl::Status* next) {
    if (trouble == Trouble::kStickyError) {
      *subject = End(subject_);
    } else if (trouble == Trouble::kHungKernel) {
      std::optional<Attempt> hangs;
      if (phase == Phase::kResult) hangs = BeginNext();
      if (phase == Phase::kPayload) SendB(subject_, kBytesB / 2, kBytesB);
      if (phase == Phase::kReplica) device(0).Release();  // the copy; the kernel hangs after it
      const int strikes = phase == Phase::kReplica ? 2 : 1;
      ASSERT_NO_FATAL_FAILURE(Await([&] { return device(0).struck() == strikes; }));
      LetHangsTimeOut();
      *subject = End(subject_);
      if (hangs.has_value()) {
        EXPECT_EQ(End(*hangs).code(), absl::StatusCode::kUnavailable);
      }
    } else {
      // While the job holds its reservation, the next one finds nothing.
      if (trouble == Trouble::kNoMemory) *next = BeginNext().refused;
      Proceed(phase);
      *subject = End(subject_);
    }
    if (trouble == Trouble::kNoMemory) return;
    Attempt after = BeginNext();
    *next = End(after);
    if (next->ok()) wrong_bits_of_next_ = WrongBits(after);
  }

  // Another caller, on device 1: an upload, a product and its result.
  void ExpectTheOtherCallerIsServed() {
    const std::string b = PutWhole(kK, kN, kSeedB, 1);
    JobSpec spec;
    spec.a = Resident(a_of_other_);
    spec.b = Resident(b);
    Attempt attempt = Begin(spec, Right());
    const absl::Status status = End(attempt);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(WrongBits(attempt), 0);
    EXPECT_TRUE(engine_->DeleteMatrix({.id = b}).ok());
  }

  std::string a_, b_elsewhere_, a_of_other_;
  Attempt before_, subject_;
  std::vector<DeviceBuffer> taken_;
  int64_t wrong_bits_of_next_ = 0;
};

// The fault strikes the job itself if the failing operation is still ahead of it, else the next
// job.
bool StrikesTheSubject(Phase phase, Trouble trouble) {
  switch (trouble) {
    case Trouble::kNoMemory:
      return false;  // everything was reserved at its header
    case Trouble::kSlowCopy:
      return false;  // and nobody else
    case Trouble::kFailingCopy:
    case Trouble::kStickyError:
    case Trouble::kHungKernel:
      return true;
    case Trouble::kLaunchError:
    case Trouble::kLateError:
    case Trouble::kWrongBit:
      return phase != Phase::kRun && phase != Phase::kCheck && phase != Phase::kResult;
  }
  return false;
}

absl::StatusCode CodeOf(Trouble trouble) {
  switch (trouble) {
    case Trouble::kNoMemory:
      return absl::StatusCode::kResourceExhausted;
    case Trouble::kFailingCopy:
    case Trouble::kLaunchError:
    case Trouble::kLateError:
      return absl::StatusCode::kInternal;
    case Trouble::kStickyError:
    case Trouble::kHungKernel:
      return absl::StatusCode::kUnavailable;
    case Trouble::kSlowCopy:
    case Trouble::kWrongBit:
      return absl::StatusCode::kOk;
  }
  return absl::StatusCode::kUnknown;
}

TEST_P(FaultMatrix, EndsAsItMust) {
  const auto [phase, trouble] = GetParam();
  ASSERT_NO_FATAL_FAILURE(Reach(phase));
  Strike(phase, trouble);
  ExpectTheOtherCallerIsServed();
  absl::Status subject, next;
  ASSERT_NO_FATAL_FAILURE(Finish(phase, trouble, &subject, &next));

  const bool strikes_subject = StrikesTheSubject(phase, trouble);
  EXPECT_EQ(subject.code(), strikes_subject ? CodeOf(trouble) : absl::StatusCode::kOk) << subject;
  if (subject.ok()) {
    EXPECT_EQ(WrongBits(subject_), strikes_subject && trouble == Trouble::kWrongBit ? 1 : 0);
  }
  if (LosesDevice(trouble)) {
    // Its operand was there alone.
    EXPECT_TRUE(absl::IsUnavailable(next) || absl::IsDataLoss(next)) << next;
  } else {
    EXPECT_EQ(next.code(), strikes_subject ? absl::StatusCode::kOk : CodeOf(trouble)) << next;
    EXPECT_EQ(wrong_bits_of_next_, !strikes_subject && trouble == Trouble::kWrongBit ? 1 : 0);
  }

  // The device: lost, or as good as ever.
  EXPECT_EQ(StatsOf(0).health.ok(), !LosesDevice(trouble)) << StatsOf(0).health;
  EXPECT_EQ(StatsOf(0).loss.hangs, trouble == Trouble::kHungKernel ? 1 : 0);
  EXPECT_TRUE(StatsOf(1).health.ok());
  EXPECT_TRUE(engine_->Health().ok());
  taken_.clear();
  ExpectTheOtherCallerIsServed();
  if (!LosesDevice(trouble)) {
    Attempt last = BeginNext();
    const absl::Status status = End(last);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(WrongBits(last), 0);
  }
  if (before_.recorder != nullptr) End(before_).IgnoreError();
  subject_ = Attempt();  // with the pieces that it holds
  if (LosesDevice(trouble)) {
    ASSERT_NO_FATAL_FAILURE(Await([&] { return StatsOf(0).loss.matrices_lost == 1; }));
  }
  DeleteAll();
  ExpectAllBack();
}

std::string NameOf(const ::testing::TestParamInfo<std::tuple<Phase, Trouble>>& info) {
  static constexpr const char* kPhases[] = {"Payload", "Queue",  "Run",
                                            "Check",   "Result", "Replica"};
  static constexpr const char* kTroubles[] = {"NoMemory",    "SlowCopy",  "FailingCopy",
                                              "LaunchError", "LateError", "StickyError",
                                              "HungKernel",  "WrongBit"};
  return std::string(kPhases[static_cast<int>(std::get<0>(info.param))]) +
         kTroubles[static_cast<int>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(
    AnyPhase, FaultMatrix,
    ::testing::Combine(::testing::Values(Phase::kPayload, Phase::kQueue, Phase::kRun, Phase::kCheck,
                                         Phase::kResult, Phase::kReplica),
                       ::testing::Values(Trouble::kNoMemory, Trouble::kSlowCopy,
                                         Trouble::kFailingCopy, Trouble::kLaunchError,
                                         Trouble::kLateError, Trouble::kStickyError,
                                         Trouble::kHungKernel, Trouble::kWrongBit)),
    NameOf);

}  // namespace
}  // namespace gemmd
