// Seeded rounds: two callers run jobs of every kind on a device that fails at random, and on
// another one. The metrics must report it all.
#include <gmock/gmock.h>

#include <map>
#include <random>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "gemm/catalogue.h"
#include "server/telemetry/metrics.h"
#include "tests/engine/fault_fixture.h"
#include "tests/telemetry/scrape.h"

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

constexpr const char* kCallers[] = {"alice", "bob"};

// The top bit of the exponent of an f32: without it, or with it, no whole number is nearly right.
constexpr uint64_t kExponentBit = 30;

class FaultRounds : public FaultTest, public ::testing::WithParamInterface<int> {
 protected:
  // The matrices of a caller, by device.
  struct Belongings {
    std::string small_a[2], large_a[2], small_b[2], large_b[2];
  };
  struct Subject {
    Attempt attempt;
    bool may_be_cancelled = false;
    bool may_be_late = false;
    std::string what;
  };

  int Below(int bound) { return static_cast<int>(random_() % bound); }
  bool OneIn(int times) { return Below(times) == 0; }

  // The engine tells the metrics until it has ended.
  ~FaultRounds() override {
    metrics_.Detach();
    EndEngine();
  }

  void Round(uint32_t seed);
  void SetUpRound();
  void InjectAtRandom();
  Injection DrawInjection();
  JobSpec SpecOf(int caller, const std::string& a) const;
  Subject BeginAtRandom();
  void ExpectAllowed(Subject& subject);
  Attempt BeginOnDevice1();
  void ExpectGood(Attempt attempt, const std::string& whose);
  void ExpectOtherCallersMatrixIsNotFound();
  void ExpectDeviceIs(bool lost, bool hung);
  absl::Status Count(Attempt& attempt);
  void ExpectTrueMetrics();

  std::mt19937 random_;
  Belongings of_[2];     // by caller
  bool broken_ = false;  // by another thread
  bool memory_taken_ = false;
  bool checked_ = false;                 // every product
  bool refused_ = false, lost_ = false;  // injected: what they may lead to
  int wrong_ = 0;
  // The metrics of all rounds.
  Metrics metrics_{{.catalogue = gemm::Catalogue()}};
  std::map<std::string, int64_t> ended_;  // jobs, by code
  int64_t replaced_ = 0;                  // products, by those of another kernel
  int64_t wrong_twice_ = 0;               // jobs
};

void FaultRounds::SetUpRound() {
  EngineOptions options = TwoFaultyDevices();
  options.streams_per_device = 1 + Below(2);
  options.max_coalesced_jobs = OneIn(2) ? 1 : 8;
  if (OneIn(2)) options.zero_copy_bytes = 0;
  FaultyDevice::peers = OneIn(2);
  checked_ = OneIn(2);
  Make(options, &metrics_);
  metrics_.Attach(engine_.get());
  for (int caller = 0; caller < 2; ++caller) {
    Belongings& of = of_[caller];
    const KeepSpec keep{.owner = kCallers[caller]};
    for (size_t i = 0; i < 2; ++i) {
      of.small_a[i] = PutWhole(kSmall.m, kSmall.k, 1, i, keep);
      of.small_b[i] = PutWhole(kSmall.k, kSmall.n, 2, i, keep);
      of.large_a[i] = PutWhole(kLarge.m, kLarge.k, 1, i, keep);
      of.large_b[i] = PutWhole(kLarge.k, kLarge.n, 2, i, keep);
    }
  }
  broken_ = memory_taken_ = refused_ = lost_ = false;
  wrong_ = 0;
}

// A product is wrong only where products are checked: nobody else would notice.
Injection FaultRounds::DrawInjection() {
  static constexpr Operation kCopies[] = {Operation::kUpload, Operation::kDownload,
                                          Operation::kPeerCopy};
  const Operation copy = kCopies[Below(3)];
  const Operation work = checked_ && OneIn(2) ? Operation::kCheck : Operation::kLaunch;
  Injection injection;
  injection.skip = Below(8);
  injection.delay = absl::Milliseconds(Below(30));
  switch (Below(checked_ ? 7 : 5)) {
    case 0:
      injection.fault = Fault::kSlow;
      injection.operation = OneIn(3) ? work : copy;
      break;
    case 1:
      injection.fault = Fault::kRefused;
      injection.operation = OneIn(2) ? work : copy;
      break;
    case 2:
      injection.fault = Fault::kFailedLate;
      injection.operation = work;
      break;
    case 3:
      injection.fault = Fault::kSticky;
      injection.operation = OneIn(2) ? work : copy;
      break;
    case 4:
      injection.fault = Fault::kHung;
      injection.operation = work;
      break;
    default:
      injection.fault = Fault::kWrongBit;
      injection.bit = 32 * static_cast<uint64_t>(Below(1 << 20)) + kExponentBit;
      break;
  }
  return injection;
}

// Up to three faults on device 0, each at one of the next operations of its kind.
void FaultRounds::InjectAtRandom() {
  for (int i = Below(4); i > 0; --i) {
    const Injection injection = DrawInjection();
    refused_ |= injection.fault == Fault::kRefused || injection.fault == Fault::kFailedLate;
    lost_ |= injection.fault == Fault::kSticky || injection.fault == Fault::kHung;
    wrong_ += injection.fault == Fault::kWrongBit ? 1 : 0;
    device(0).Inject(injection);
  }
}

// A caller's product, whose first operand is this matrix.
JobSpec FaultRounds::SpecOf(int caller, const std::string& a) const {
  JobSpec spec;
  spec.a = ResidentOf(kCallers[caller], a);
  spec.flow = kCallers[caller];
  if (checked_) spec.verify = Verify::kAlways;
  return spec;
}

// A product of one of the callers whose first operand lies on device 0. The second one is sent,
// or lies there or on device 1.
FaultRounds::Subject FaultRounds::BeginAtRandom() {
  const bool large = OneIn(2);
  const Size size = large ? kLarge : kSmall;
  const int source = Below(3), caller = Below(2);
  const Belongings& of = of_[caller];
  JobSpec spec = SpecOf(caller, large ? of.large_a[0] : of.small_a[0]);
  if (source < 2) {
    spec.b = ResidentOf(kCallers[caller], large ? of.large_b[source] : of.small_b[source]);
  }
  if (source == 2) spec.b = {Shape{size.k, size.n, gemm::DType::kF32}, FromPayload{}};
  Subject subject;
  subject.what = absl::StrCat(kCallers[caller], ": ", large ? "large" : "small",
                              source == 2 ? ", sent" : ", resident");
  if (OneIn(4)) spec.keep_result = KeepSpec{.owner = kCallers[caller]};
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
  const absl::Status status = Count(subject.attempt);
  switch (status.code()) {
    case absl::StatusCode::kOk:
      EXPECT_EQ(WrongBits(subject.attempt), 0) << subject.what;
      return;
    case absl::StatusCode::kInternal:
      EXPECT_TRUE(refused_) << status;
      return;
    case absl::StatusCode::kUnavailable:
      EXPECT_TRUE(lost_ || broken_) << status;
      return;
    case absl::StatusCode::kDataLoss:
      EXPECT_TRUE(lost_ || broken_ || wrong_ > 1) << status;
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
  const int caller = Below(2);
  JobSpec spec = SpecOf(caller, large ? of_[caller].large_a[1] : of_[caller].small_a[1]);
  spec.b = {Shape{size.k, size.n, gemm::DType::kF32}, FromPayload{}};
  Attempt attempt = Begin(spec, WholeProduct(size.m, size.n, size.k, 1, 2));
  if (attempt.job != nullptr) {
    attempt.job->Append(Role::kB, 0, AsCord(Whole(size.k, size.n, 2)), [] {});
  }
  return attempt;
}

void FaultRounds::ExpectGood(Attempt attempt, const std::string& whose) {
  const absl::Status status = Count(attempt);
  EXPECT_TRUE(status.ok()) << whose << ": " << status;
  if (status.ok()) {
    EXPECT_EQ(WrongBits(attempt), 0) << whose;
  }
}

// Also one that is lost.
void FaultRounds::ExpectOtherCallersMatrixIsNotFound() {
  JobSpec spec = SpecOf(0, of_[1].small_a[0]);
  spec.b = ResidentOf(kCallers[0], of_[0].small_b[1]);
  Attempt attempt = Begin(spec, WholeProduct(kSmall.m, kSmall.n, kSmall.k, 1, 2));
  EXPECT_EQ(Count(attempt).code(), absl::StatusCode::kNotFound);
}

// How it ended, for the comparison with the metrics.
absl::Status FaultRounds::Count(Attempt& attempt) {
  const absl::Status status = End(attempt);
  ++ended_[absl::StatusCodeToString(status.code())];
  if (absl::StrContains(status.message(), "failed its check twice")) ++wrong_twice_;
  if (status.ok()) {
    const CheckReport check = attempt.recorder->Wait(kPatience)->report.check;
    EXPECT_EQ(check.result != CheckResult::kNone, checked_);
    replaced_ += check.failed_kernel.empty() ? 0 : 1;
  }
  return status;
}

// The metrics agree with what callers saw, in all rounds up to now.
void FaultRounds::ExpectTrueMetrics() {
  const ParsedScrape scrape = ParseScrape(metrics_.Scrape());
  for (size_t i = 0; i < 2; ++i) {
    const std::string of = absl::StrCat("{device=\"", Name(i), "\"}");
    const DeviceStats stats = StatsOf(i);
    EXPECT_EQ(scrape.at("gemmd_device_healthy" + of), stats.health.ok() ? 1 : 0);
    EXPECT_EQ(scrape.at("gemmd_device_hangs_total" + of), stats.loss.hangs);
    EXPECT_EQ(scrape.at("gemmd_matrices_lost_total" + of), stats.loss.matrices_lost);
    EXPECT_EQ(scrape.at("gemmd_streams_in_use" + of), 0);
  }
  for (const char* gauge :
       {"gemmd_jobs_in_flight", "gemmd_queue_depth", "gemmd_admitted_bytes", "gemmd_matrices"}) {
    EXPECT_EQ(scrape.at(gauge), 0) << gauge;
  }
  for (const std::string& code : scrape.LabelValues("gemmd_jobs_total", "outcome")) {
    double jobs = 0;  // of all kernels
    for (const auto& [series, count] : scrape.samples) {
      const bool of_code = absl::StrContains(series, absl::StrCat("outcome=\"", code, "\""));
      if (absl::StartsWith(series, "gemmd_jobs_total{") && of_code) jobs += count;
    }
    EXPECT_EQ(jobs, ended_[code]) << code;
  }
  double replaced = 0, wrong_twice = 0;
  for (const auto& [series, count] : scrape.samples) {
    if (!absl::StartsWith(series, "gemmd_result_checks_total{")) continue;
    const auto is = [&series](absl::string_view result) {
      return absl::StrContains(series, absl::StrCat("result=\"", result, "\""));
    };
    if (is("wrong") || is("suspect")) replaced += count;
    if (is("lost")) wrong_twice += count;
  }
  EXPECT_GE(replaced, replaced_) << "and those whose job failed later";
  EXPECT_EQ(wrong_twice, wrong_twice_);
}

// How device 0 is after the round, while the other one is as it was.
void FaultRounds::ExpectDeviceIs(bool lost, bool hung) {
  // A sticky error is found when the stream gets there, which may be after its job was cancelled.
  if (lost) {
    ASSERT_NO_FATAL_FAILURE(Await([&] { return !StatsOf(0).health.ok(); }));
  }
  EXPECT_EQ(StatsOf(0).health.ok(), !lost) << StatsOf(0).health;
  EXPECT_LE(StatsOf(0).loss.hangs, hung ? 1 : 0);
  EXPECT_TRUE(StatsOf(1).health.ok());
  EXPECT_TRUE(engine_->Health().ok()) << "/readyz";
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
  const ReplicaStats copies = StatsOf(0).replicas;
  for (Attempt& other : others) {
    if (copies.begun_peer + copies.begun_host == 0) {
      ExpectGood(std::move(other), "another caller's job");
    } else {
      // It may have gone to device 0, and has what that brings.
      subjects.push_back({.attempt = std::move(other), .what = "sent, from device 1"});
    }
  }
  for (Subject& subject : subjects) {
    if (subject.attempt.recorder != nullptr) subject.attempt.recorder->Release();
  }
  // Only hung work is left, or nothing.
  ASSERT_NO_FATAL_FAILURE(Await([&] {
    return engine_->Stats().jobs.used == 0 || device(0).hung() || !StatsOf(0).health.ok();
  })) << Held(16);
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
  const bool lost = hung || broken_ || device(0).struck(Fault::kSticky) > 0;
  ASSERT_NO_FATAL_FAILURE(ExpectDeviceIs(lost, hung));
  device(0).ClearInjections();
  ExpectGood(BeginOnDevice1(), "after it all");
  subjects.clear();
  if (!lost) {
    JobSpec spec = SpecOf(0, of_[0].large_a[0]);
    spec.b = ResidentOf(kCallers[0], of_[0].large_b[1]);
    ExpectGood(Begin(spec, WholeProduct(kLarge.m, kLarge.n, kLarge.k, 1, 2)), "on device 0 again");
  } else {
    // Copies on the other device take the place of some, or of all.
    ASSERT_NO_FATAL_FAILURE(Await([&] {
      const DeviceLossStats& loss = StatsOf(0).loss;
      return loss.matrices_lost + loss.matrices_moved > 0;
    }));
  }
  ExpectOtherCallersMatrixIsNotFound();
  DeleteAll();
  ExpectAllBack();
  ExpectTrueMetrics();
  metrics_.Detach();
  EndEngine();
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
