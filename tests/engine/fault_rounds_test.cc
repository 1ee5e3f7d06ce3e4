// Seeded rounds: jobs of every kind on a device on which things go wrong at random, and
// another caller's jobs on the other device.
#include <gmock/gmock.h>

#include <random>
#include <string>
#include <thread>

#include "tests/engine/fault_fixture.h"

namespace gemmd {
namespace {

constexpr int kGroups = 10;
#ifdef __SANITIZE_THREAD__
constexpr int kRoundsOfGroup = 4;  // each takes seconds
#else
constexpr int kRoundsOfGroup = 20;
#endif

// Products of Whole matrices: small ones are staged in one block, large ones are not.
struct Size {
  int64_t m, k, n;
};
constexpr Size kSmall{64, 64, 48}, kLarge{320, 320, 300};

class FaultRounds : public FaultTest, public ::testing::WithParamInterface<int> {
 protected:
  struct Subject {
    Attempt attempt;
    bool may_be_cancelled = false;
    bool may_be_late = false;
    std::string what;
  };

  int Below(int bound) { return static_cast<int>(random_() % bound); }
  bool OneIn(int times) { return Below(times) == 0; }

  void Round(uint32_t seed);
  void SetUpRound();
  void InjectAtRandom();
  Subject BeginAtRandom();
  void ExpectAllowed(Subject& subject);
  Attempt BeginOnDevice1();
  void ExpectGood(Attempt attempt, const std::string& whose);

  std::mt19937 random_;
  std::string small_a_[2], large_a_[2], small_b_[2], large_b_[2];  // by device
  bool broken_ = false;                                            // by another thread
  bool memory_taken_ = false;
  bool refused_ = false, lost_ = false;  // injected: what they may lead to
};

void FaultRounds::SetUpRound() {
  EngineOptions options = TwoFaultyDevices();
  options.streams_per_device = 1 + Below(2);
  FaultyDevice::peers = OneIn(2);
  Make(options);
  for (size_t i = 0; i < 2; ++i) {
    small_a_[i] = PutWhole(kSmall.m, kSmall.k, 1, i);
    small_b_[i] = PutWhole(kSmall.k, kSmall.n, 2, i);
    large_a_[i] = PutWhole(kLarge.m, kLarge.k, 1, i);
    large_b_[i] = PutWhole(kLarge.k, kLarge.n, 2, i);
  }
  broken_ = memory_taken_ = refused_ = lost_ = false;
}

// Up to three faults on device 0, each at one of the next operations of its kind. Wrong bits
// are not among them: nothing that these tests are of would notice.
void FaultRounds::InjectAtRandom() {
  static constexpr Operation kCopies[] = {Operation::kUpload, Operation::kDownload,
                                          Operation::kPeerCopy};
  for (int i = Below(4); i > 0; --i) {
    Injection injection;
    injection.skip = Below(8);
    injection.delay = absl::Milliseconds(Below(30));
    switch (Below(5)) {
      case 0:
        injection.fault = Fault::kSlow;
        injection.operation = kCopies[Below(3)];
        break;
      case 1:
        injection.fault = Fault::kRefused;
        injection.operation = OneIn(2) ? Operation::kLaunch : kCopies[Below(3)];
        break;
      case 2:
        injection.fault = Fault::kFailedLate;
        break;
      case 3:
        injection.fault = Fault::kSticky;
        injection.operation = OneIn(2) ? Operation::kLaunch : kCopies[Below(3)];
        break;
      case 4:
        injection.fault = Fault::kHung;
        break;
    }
    refused_ |= injection.fault == Fault::kRefused || injection.fault == Fault::kFailedLate;
    lost_ |= injection.fault == Fault::kSticky || injection.fault == Fault::kHung;
    device(0).Inject(injection);
  }
}

// A product whose first operand lies on device 0. The second one is sent, or lies there or
// on device 1.
FaultRounds::Subject FaultRounds::BeginAtRandom() {
  const bool large = OneIn(2);
  const Size size = large ? kLarge : kSmall;
  const int source = Below(3);
  JobSpec spec;
  spec.a = Resident(large ? large_a_[0] : small_a_[0]);
  if (source < 2) spec.b = Resident(large ? large_b_[source] : small_b_[source]);
  if (source == 2) spec.b = {Shape{size.k, size.n, gemm::DType::kF32}, FromPayload{}};
  Subject subject;
  subject.what = absl::StrCat(large ? "large" : "small", source == 2 ? ", sent" : ", resident");
  if (OneIn(4)) spec.keep_result = KeepSpec{};
  if (OneIn(6)) {
    subject.may_be_late = true;
    spec.deadline = SteadyNow() + absl::Milliseconds(Below(40));
  }
  if (OneIn(2)) spec.receiver = NewReceiver();
  const size_t hold = OneIn(3) ? 4 : 0;
  subject.attempt = Begin(spec, WholeProduct(size.m, size.n, size.k, 1, 2), hold);
  Attempt& attempt = subject.attempt;
  if (!attempt.refused.ok()) return subject;
  if (source == 2) {
    const absl::Cord bytes = AsCord(Whole(size.k, size.n, 2));
    const size_t middle = Below(static_cast<int>(bytes.size()));
    if (middle > 0) attempt.job->Append(Role::kB, 0, bytes.Subcord(0, middle), [] {});
    attempt.job->Append(Role::kB, middle, bytes.Subcord(middle, bytes.size()), [] {});
  }
  if (OneIn(6)) {
    subject.may_be_cancelled = true;
    if (OneIn(2)) absl::SleepFor(absl::Microseconds(Below(3000)));
    attempt.job->Cancel(absl::CancelledError("by the test"));
  }
  return subject;
}

void FaultRounds::ExpectAllowed(Subject& subject) {
  subject.attempt.recorder->Release();
  const absl::Status status = End(subject.attempt);
  switch (status.code()) {
    case absl::StatusCode::kOk:
      EXPECT_EQ(WrongBits(subject.attempt), 0) << subject.what;
      return;
    case absl::StatusCode::kInternal:
      EXPECT_TRUE(refused_) << status;
      return;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
      EXPECT_TRUE(lost_ || broken_) << status;
      return;
    case absl::StatusCode::kResourceExhausted:
      EXPECT_TRUE(memory_taken_ || subject.may_be_late) << status;
      return;
    case absl::StatusCode::kCancelled:
      EXPECT_TRUE(subject.may_be_cancelled) << status;
      return;
    case absl::StatusCode::kDeadlineExceeded:
      // The clock was set forward if something hung.
      EXPECT_TRUE(subject.may_be_late) << status << ", " << subject.what;
      return;
    default:
      ADD_FAILURE() << subject.what << ": " << status;
  }
}

Attempt FaultRounds::BeginOnDevice1() {
  const bool large = OneIn(2);
  const Size size = large ? kLarge : kSmall;
  JobSpec spec;
  spec.a = Resident(large ? large_a_[1] : small_a_[1]);
  spec.b = {Shape{size.k, size.n, gemm::DType::kF32}, FromPayload{}};
  Attempt attempt = Begin(spec, WholeProduct(size.m, size.n, size.k, 1, 2));
  if (attempt.job != nullptr) {
    attempt.job->Append(Role::kB, 0, AsCord(Whole(size.k, size.n, 2)), [] {});
  }
  return attempt;
}

void FaultRounds::ExpectGood(Attempt attempt, const std::string& whose) {
  const absl::Status status = End(attempt);
  EXPECT_TRUE(status.ok()) << whose << ": " << status;
  if (status.ok()) {
    EXPECT_EQ(WrongBits(attempt), 0) << whose;
  }
}

void FaultRounds::Round(uint32_t seed) {
  random_.seed(seed);
  ASSERT_NO_FATAL_FAILURE(SetUpRound());
  InjectAtRandom();
  std::vector<Subject> subjects;
  std::vector<Attempt> others;
  std::vector<DeviceBuffer> taken;
  for (int i = 0; i < 10; ++i) {
    subjects.push_back(BeginAtRandom());
    if (i % 3 == 0) others.push_back(BeginOnDevice1());
    if (OneIn(20)) {
      memory_taken_ = true;
      taken = device(0).TakeAllMemory();
    }
    if (OneIn(3)) taken.clear();
    if (OneIn(60)) {
      broken_ = true;
      device(0).Break();
    }
    if (OneIn(3)) absl::SleepFor(absl::Microseconds(Below(2000)));
  }
  for (Attempt& other : others) ExpectGood(std::move(other), "another caller's job");
  for (Subject& subject : subjects) {
    if (subject.attempt.recorder != nullptr) subject.attempt.recorder->Release();
  }
  // Only what hangs is left, or nothing.
  ASSERT_NO_FATAL_FAILURE(Await([&] {
    return engine_->Stats().jobs.used == 0 || device(0).hung() || !StatsOf(0).health.ok();
  })) << Held(8);
  if (device(0).struck(Fault::kHung) > 0) {
    // The stream may yet have to get there.
    ASSERT_NO_FATAL_FAILURE(Await([&] { return device(0).hung() || !StatsOf(0).health.ok(); }));
    // The clock is of both devices: what device 1 works on is not to seem to hang.
    ASSERT_NO_FATAL_FAILURE(Await([&] { return StatsOf(1).streams.used == 0; }));
    LetHangsTimeOut();
  }
  for (Subject& subject : subjects) ExpectAllowed(subject);

  taken.clear();
  const bool hung = device(0).struck(Fault::kHung) > 0;
  const bool sticky = device(0).struck(Fault::kSticky) > 0 || broken_;
  // A sticky error is found when the stream gets there, which may be after its job was cancelled.
  if (sticky || hung) {
    ASSERT_NO_FATAL_FAILURE(Await([&] { return !StatsOf(0).health.ok(); }));
  }
  EXPECT_EQ(StatsOf(0).health.ok(), !sticky && !hung) << StatsOf(0).health;
  EXPECT_LE(StatsOf(0).loss.hangs, hung ? 1 : 0);
  EXPECT_TRUE(StatsOf(1).health.ok());
  EXPECT_TRUE(engine_->Health().ok());
  device(0).ClearInjections();
  ExpectGood(BeginOnDevice1(), "after it all");
  subjects.clear();
  if (StatsOf(0).health.ok()) {
    JobSpec spec;
    spec.a = Resident(large_a_[0]);
    spec.b = Resident(large_b_[1]);
    ExpectGood(Begin(spec, WholeProduct(kLarge.m, kLarge.n, kLarge.k, 1, 2)), "on device 0 again");
  } else {
    ASSERT_NO_FATAL_FAILURE(Await([&] { return StatsOf(0).loss.matrices_lost > 0; }));
  }
  DeleteAll();
  ExpectAllBack();
  for (size_t i = 0; i < 2; ++i) device(i).Release();
  engine_.reset();
}

TEST_P(FaultRounds, NothingWrongNothingHeldNobodyElseHurt) {
  for (int i = 0; i < kRoundsOfGroup; ++i) {
    const uint32_t seed = GetParam() * kRoundsOfGroup + i;
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Round(seed);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, FaultRounds, ::testing::Range(0, kGroups));

}  // namespace
}  // namespace gemmd
