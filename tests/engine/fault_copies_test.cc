// Seeded rounds: jobs share one resident matrix over two devices while it is copied, replaced and
// deleted, and while either device fails.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/engine/fault_fixture.h"

namespace gemmd {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr int kCopyRounds = 20;
#else
constexpr int kCopyRounds = 200;
#endif

class FaultCopies : public FaultTest {
 protected:
  static constexpr int64_t kM = 320, kK = 320, kN = 300;

  int Below(int bound) { return static_cast<int>(random_() % bound); }
  bool OneIn(int times) { return Below(times) == 0; }

  // The matrix is looked up by its name: it is the one of seed 2, or its replacement of seed 3.
  Attempt BeginJob() {
    JobSpec spec;
    spec.a = {Shape{kM, kK, gemm::DType::kF32}, FromPayload{}};
    spec.b = {std::nullopt, FromResident{{.name = "w"}}};
    return Begin(spec, WholeProduct(kM, kN, kK, 1, 2));
  }
  static void SendA(Attempt& attempt) {
    if (attempt.job != nullptr) attempt.job->Append(Role::kA, 0, AsCord(Whole(kM, kK, 1)), [] {});
  }
  void InjectIntoACopy() {
    static constexpr Fault kFaults[] = {Fault::kSlow, Fault::kRefused, Fault::kSticky};
    static constexpr Operation kCopies[] = {Operation::kUpload, Operation::kDownload,
                                            Operation::kPeerCopy};
    const Fault fault = kFaults[Below(3)];
    refused_ |= fault == Fault::kRefused;
    lost_ |= fault == Fault::kSticky;
    device(Below(2)).Inject({.fault = fault,
                             .operation = kCopies[Below(3)],
                             .skip = Below(4),
                             .delay = absl::Milliseconds(Below(5))});
  }
  void ExpectAllowed(Attempt& attempt) {
    const absl::Status status = End(attempt);
    switch (status.code()) {
      case absl::StatusCode::kOk: {
        const bool first = WrongBits(attempt) == 0;
        attempt.expected = &WholeProduct(kM, kN, kK, 1, 3);
        EXPECT_TRUE(first || WrongBits(attempt) == 0);
        ++good_;
        return;
      }
      case absl::StatusCode::kInternal:
        EXPECT_TRUE(refused_) << status;
        return;
      case absl::StatusCode::kUnavailable:
      case absl::StatusCode::kDataLoss:
        EXPECT_TRUE(lost_) << status;
        return;
      case absl::StatusCode::kNotFound:
        EXPECT_TRUE(deleted_) << status;
        return;
      default:
        ADD_FAILURE() << status;
    }
  }
  // No job uses the matrix, which lies there, and perhaps on the other device, too.
  void LoseTheFirstDevice() {
    for (size_t i = 0; i < 2; ++i) device(i).ClearInjections();
    device(0).Break();
    const auto told = [&] {
      const DeviceLossStats loss = StatsOf(0).loss;
      return loss.matrices_moved + loss.matrices_lost == 1;
    };
    ASSERT_NO_FATAL_FAILURE(Await(told));
    const bool stays = StatsOf(0).loss.matrices_moved == 1;
    Attempt next = BeginJob();
    SendA(next);
    lost_ = !stays;
    ExpectAllowed(next);
  }
  void Round(uint32_t seed);

  std::mt19937 random_;
  bool refused_ = false, lost_ = false, deleted_ = false;  // what jobs may end with
  int good_ = 0, copies_ = 0, losses_ = 0, moved_ = 0;     // of all rounds
};

void FaultCopies::Round(uint32_t seed) {
  random_.seed(seed);
  refused_ = lost_ = deleted_ = false;
  FaultyDevice::peers = OneIn(2);
  Make(TwoFaultyDevices());
  PutWhole(kK, kN, 2, 0, {.name = "w"});
  if (OneIn(2)) InjectIntoACopy();
  // Jobs whose payload is on its way count as work, so they are spread.
  std::vector<Attempt> attempts;
  std::vector<bool> sent;
  const int event_at = Below(8), event = Below(4);
  for (int i = 0; i < 8; ++i) {
    attempts.push_back(BeginJob());
    sent.push_back(OneIn(2));
    if (sent.back()) SendA(attempts.back());
    if (i != event_at) continue;
    if (OneIn(2)) absl::SleepFor(absl::Microseconds(Below(500)));
    if (event == 0) {
      lost_ = true;
      device(Below(2)).Break();
    } else if (event == 1) {
      deleted_ = true;
      (void)engine_->DeleteMatrix({.name = "w"});
    } else if (event == 2) {
      const auto replaced = TryPut(kK, kN, 3, Below(2), {.name = "w", .replace = true});
      EXPECT_TRUE(replaced.ok() || refused_ || lost_) << replaced.status();
    }
  }
  for (size_t i = 0; i < attempts.size(); ++i) {
    if (!sent[i]) SendA(attempts[i]);
  }
  for (Attempt& attempt : attempts) ExpectAllowed(attempt);
  attempts.clear();
  if (event == 3 && !lost_) LoseTheFirstDevice();
  for (size_t i = 0; i < 2; ++i) {
    const DeviceStats stats = StatsOf(i);
    copies_ += static_cast<int>(stats.replicas.begun_peer + stats.replicas.begun_host);
    losses_ += stats.health.ok() ? 0 : 1;
    moved_ += static_cast<int>(stats.loss.matrices_moved);
  }
  DeleteAll();
  ExpectAllBack();
  EndEngine();
}

TEST_F(FaultCopies, NoWrongBitAndNothingHeld) {
  for (int i = 0; i < kCopyRounds && !HasFailure(); ++i) {
    SCOPED_TRACE(absl::StrCat("seed ", i));
    Round(i);
  }
  // The rounds are not in vain.
  EXPECT_GT(good_, kCopyRounds * 3);
  EXPECT_GT(copies_, kCopyRounds / 2);
  EXPECT_GT(losses_, kCopyRounds / 10);
  EXPECT_GT(moved_, kCopyRounds / 20) << "matrices that a copy outlived";
}

}  // namespace
}  // namespace gemmd
