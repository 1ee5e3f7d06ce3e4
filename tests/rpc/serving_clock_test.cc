// Time that is left out does not count.
#include "server/base/serving_clock.h"

#include "gtest/gtest.h"
#include "server/rpc/watch/call_guard.h"

namespace gemmd {
namespace {

// An hour, so that a slow machine changes nothing.
TEST(ServingClock, LeavesOutWhatItIsTold) {
  PayloadClock payload;
  payload.Start();
  const absl::Time before = ServingClock::Now();
  ServingClock::LeaveOut(absl::Hours(1));
  const absl::Time after = ServingClock::Now();
  EXPECT_LT(after, before - absl::Minutes(59));
  EXPECT_LT(payload.Elapsed(), -absl::Minutes(59));
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_GE(ServingClock::Now() - after, absl::Milliseconds(20)) << "it runs on afterwards";
}

}  // namespace
}  // namespace gemmd
