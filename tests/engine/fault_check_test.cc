// Each trouble of a device at the check of a product: at the first one, and where the product was
// wrong at the second kernel and its check. No wrong product is delivered.
#include <gmock/gmock.h>

#include <string>
#include <tuple>

#include "tests/engine/fault_fixture.h"

namespace gemmd {
namespace {

// The place of the trouble.
enum class At { kFirstCheck, kSecondKernel, kSecondCheck };

constexpr int64_t kRows = 200, kDepth = 160, kColumns = 192;

bool TakesTheDevice(Fault fault) { return fault == Fault::kSticky || fault == Fault::kHung; }

class FaultCheck : public FaultTest, public ::testing::WithParamInterface<std::tuple<At, Fault>> {
 protected:
  void SetUp() override {
    Make(TwoFaultyDevices());
    for (size_t i = 0; i < 2; ++i) {
      a_[i] = PutWhole(kRows, kDepth, 1, i);
      b_[i] = PutWhole(kDepth, kColumns, 2, i);
    }
  }

  Attempt BeginOn(size_t i) {
    JobSpec spec;
    spec.a = Resident(a_[i]);
    spec.b = Resident(b_[i]);
    spec.verify = Verify::kAlways;
    return Begin(spec, WholeProduct(kRows, kColumns, kDepth, 1, 2));
  }

  // A wrong product has an element with an exponent that no right one has.
  void Strike(At at, Fault fault) {
    Injection injection{.fault = fault, .operation = Operation::kCheck, .bit = 32 * 555 + 30};
    if (at != At::kFirstCheck) {
      device(0).Inject({.fault = Fault::kWrongBit, .bit = 32 * 777 + 30});
      injection.skip = 1;
    }
    if (at == At::kSecondKernel) injection.operation = Operation::kLaunch;
    device(0).Inject(injection);
  }

  void ExpectGood(size_t i) {
    Attempt attempt = BeginOn(i);
    const absl::Status status = End(attempt);
    EXPECT_TRUE(status.ok()) << Name(i) << ": " << status;
    EXPECT_EQ(WrongBits(attempt), 0) << Name(i);
  }

  std::string a_[2], b_[2];  // by device
};

absl::StatusCode CodeAfter(Fault fault) {
  switch (fault) {
    case Fault::kSlow:
      return absl::StatusCode::kOk;
    case Fault::kRefused:
    case Fault::kFailedLate:
      return absl::StatusCode::kInternal;
    case Fault::kSticky:
    case Fault::kHung:
      return absl::StatusCode::kUnavailable;
    case Fault::kWrongBit:
      return absl::StatusCode::kDataLoss;
    case Fault::kOtherKernel:
      break;
  }
  return absl::StatusCode::kUnknown;
}

TEST_P(FaultCheck, EndsAsItMust) {
  const auto [at, fault] = GetParam();
  Strike(at, fault);
  Attempt subject = BeginOn(0);
  ASSERT_TRUE(subject.refused.ok()) << subject.refused;
  ASSERT_NO_FATAL_FAILURE(Await([&, fault = fault] { return device(0).struck(fault) > 0; }));
  ExpectGood(1);
  if (fault == Fault::kHung) {
    // The clock is of both devices: what device 1 works on is not to seem to hang.
    ASSERT_NO_FATAL_FAILURE(Await([&] { return StatsOf(1).streams.used == 0; }));
    LetHangsTimeOut();
  }
  const absl::Status status = End(subject);
  EXPECT_EQ(status.code(), CodeAfter(fault)) << status;
  if (status.ok()) {
    EXPECT_EQ(WrongBits(subject), 0);
    const CheckReport check = subject.recorder->Wait(kPatience)->report.check;
    EXPECT_EQ(!check.failed_kernel.empty(), at != At::kFirstCheck);
  } else {
    EXPECT_TRUE(subject.recorder->bytes().empty()) << "nothing of what was not checked";
  }
  if (TakesTheDevice(fault)) {
    ASSERT_NO_FATAL_FAILURE(Await([&] { return StatsOf(0).loss.matrices_lost == 2; }));
    Attempt next = BeginOn(0);
    EXPECT_EQ(End(next).code(), absl::StatusCode::kDataLoss);
  } else {
    ExpectGood(0);
  }
  EXPECT_EQ(StatsOf(0).health.ok(), !TakesTheDevice(fault)) << StatsOf(0).health;
  ExpectGood(1);
  subject = Attempt();
  DeleteAll();
  ExpectAllBack();
}

std::string NameOfCase(const ::testing::TestParamInfo<std::tuple<At, Fault>>& info) {
  static constexpr const char* kPlaces[] = {"FirstCheck", "SecondKernel", "SecondCheck"};
  static constexpr const char* kFaults[] = {"Slow",   "Refused", "FailedLate",
                                            "Sticky", "Hung",    "WrongBit"};
  return std::string(kPlaces[static_cast<int>(std::get<0>(info.param))]) +
         kFaults[static_cast<int>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(
    AnyTrouble, FaultCheck,
    ::testing::Combine(::testing::Values(At::kFirstCheck, At::kSecondKernel, At::kSecondCheck),
                       ::testing::Values(Fault::kSlow, Fault::kRefused, Fault::kFailedLate,
                                         Fault::kSticky, Fault::kHung)),
    NameOfCase);
// A check computes no product.
INSTANTIATE_TEST_SUITE_P(WrongTwice, FaultCheck,
                         ::testing::Values(std::tuple(At::kSecondKernel, Fault::kWrongBit)),
                         NameOfCase);

}  // namespace
}  // namespace gemmd
