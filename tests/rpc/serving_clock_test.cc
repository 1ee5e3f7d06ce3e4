// Time that is left out does not count.
#include "server/rpc/watch/serving_clock.h"

#include "gtest/gtest.h"
#include "server/rpc/watch/payload_clock.h"

namespace gemmd {
namespace {

TEST(ServingClock, LeavesOutWhatItIsTold) {
  const PayloadClock payload;
  const absl::Time before = ServingClock::Now();
  const absl::Time begun = SteadyNow();
  absl::SleepFor(absl::Milliseconds(50));
  const absl::Duration passed = SteadyNow() - begun;
  ServingClock::LeaveOut(passed);
  EXPECT_LT(ServingClock::Now() - before, absl::Milliseconds(40));
  EXPECT_LT(payload.Elapsed(), absl::Milliseconds(40));
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_GE(payload.Elapsed(), absl::Milliseconds(20)) << "it runs on afterwards";
}

}  // namespace
}  // namespace gemmd
