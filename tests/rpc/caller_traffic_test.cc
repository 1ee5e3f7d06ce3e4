// Open calls and bytes a second of each caller, under a clock that the test moves.
#include "server/rpc/watch/caller_traffic.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/bounds/bound_error.h"
#include "tests/base/test_clock.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CallerQuotaPtr Quota(CallerQuota quota) {
  return std::make_shared<const CallerQuota>(std::move(quota));
}

class CallerTrafficTest : public testing::Test {
 protected:
  ~CallerTrafficTest() override { traffic_.timer().Stop(); }

  TrafficShare Begin(const CallerQuotaPtr& quota) {
    absl::StatusOr<TrafficShare> share = traffic_.Begin(quota);
    EXPECT_TRUE(share.ok()) << share.status();
    return share.ok() ? *std::move(share) : TrafficShare();
  }
  // So many calls that are answered and held.
  std::vector<TrafficShare> Answered(const CallerQuotaPtr& quota, int64_t calls) {
    std::vector<TrafficShare> held;
    for (int64_t i = 0; i < calls; ++i) {
      held.push_back(Begin(quota));
      held.back().Answered();
    }
    return held;
  }
  static bool Ready(const TrafficShare& share) { return share.ready_at() <= SteadyNow(); }

  TestClock clock_;
  std::vector<std::string> reached_;
  CallerTraffic traffic_{[this](absl::string_view bound) { reached_.emplace_back(bound); }};
};

TEST_F(CallerTrafficTest, ACallerHasItsStreamsAndNotOneMore) {
  const CallerQuotaPtr alice = Quota({.caller = "alice", .streams = 2});
  TrafficShare first = Begin(alice);
  TrafficShare second = Begin(alice);
  const absl::Status refused = traffic_.Begin(alice).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("streams: the caller 'alice'"), HasSubstr("2")));
  EXPECT_EQ(ReachedBoundOf(refused)->caller, "alice");
  EXPECT_THAT(reached_, ElementsAre("streams"));
  const TrafficShare bob = Begin(Quota({.caller = "bob", .streams = 2}));
  second = std::move(first);  // which gives up the second
  const TrafficShare third = Begin(alice);
  EXPECT_FALSE(traffic_.Begin(alice).ok());
}

// A client that has read its answer may call again, even before gRPC has told of the end.
TEST_F(CallerTrafficTest, AnAnsweredCallIsNotOpen) {
  const CallerQuotaPtr alice = Quota({.caller = "alice", .streams = 2});
  const std::vector<TrafficShare> held = Answered(alice, 2 + CallerTraffic::kMoreAnswers - 1);
  const TrafficShare first = Begin(alice), second = Begin(alice);
  EXPECT_FALSE(traffic_.Begin(alice).ok()) << "two are open";
}

TEST_F(CallerTrafficTest, AnswersThatAreNotReadCount) {
  const CallerQuotaPtr alice = Quota({.caller = "alice", .streams = 2});
  std::vector<TrafficShare> held = Answered(alice, 2 + CallerTraffic::kMoreAnswers);
  held.back().Answered();
  const absl::Status refused = traffic_.Begin(alice).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("10 answers that it has not read; allowed: 2 and 8"));
  EXPECT_EQ(ReachedBoundOf(refused)->bound, "streams");
  held.pop_back();
  EXPECT_TRUE(traffic_.Begin(alice).ok());
}

TEST_F(CallerTrafficTest, WithoutABoundAnyNumberOfAnswersMayBeLeft) {
  const CallerQuotaPtr alice = Quota({.caller = "alice"});
  const std::vector<TrafficShare> held = Answered(alice, 1000);
  clock_.Advance(absl::Minutes(1));
  EXPECT_TRUE(traffic_.Begin(alice).ok());
}

TEST_F(CallerTrafficTest, ACallMayGoOnAtOnceWithinItsRate) {
  TrafficShare share = Begin(Quota({.caller = "alice", .bytes_per_second = 1000}));
  EXPECT_TRUE(Ready(share));
  share.Charge(1000);
  EXPECT_TRUE(Ready(share)) << "a second's worth is saved up";
  share.Charge(500);
  EXPECT_FALSE(Ready(share));
  clock_.Advance(absl::Milliseconds(499));
  EXPECT_FALSE(Ready(share));
  clock_.Advance(absl::Milliseconds(2));
  EXPECT_TRUE(Ready(share));
}

// As of two tokens of one caller, with roles that have quotas of their own.
TEST_F(CallerTrafficTest, ACredentialWithoutARateForgivesNothing) {
  TrafficShare owes = Begin(Quota({.caller = "alice", .bytes_per_second = 1000}));
  owes.Charge(60'000);
  TrafficShare free = Begin(Quota({.caller = "alice"}));
  EXPECT_TRUE(Ready(free));
  free.Charge(1'000'000);
  EXPECT_FALSE(Ready(owes));
  owes.Use(Quota({.caller = "bob"}));
  EXPECT_FALSE(Ready(owes)) << "a quota of another caller";
  clock_.Advance(absl::Seconds(58));
  EXPECT_FALSE(Ready(owes));
  clock_.Advance(absl::Seconds(2));
  EXPECT_TRUE(Ready(owes)) << "what the other moved does not count";
  owes.Charge(60'000);
  owes.Use(Quota({.caller = "alice"}));
  EXPECT_TRUE(Ready(owes)) << "where its own quota has no rate any more";
}

TEST_F(CallerTrafficTest, NoMoreThanASecondIsSavedUp) {
  TrafficShare share = Begin(Quota({.caller = "alice", .bytes_per_second = 1000}));
  share.Charge(1);
  clock_.Advance(absl::Hours(1));
  share.Charge(1000);
  EXPECT_TRUE(Ready(share));
  share.Charge(1);
  EXPECT_FALSE(Ready(share));
}

TEST_F(CallerTrafficTest, ACallersCallsShareItsRateAndOthersHaveTheirOwn) {
  const CallerQuotaPtr alice = Quota({.caller = "alice", .bytes_per_second = 1000});
  TrafficShare first = Begin(alice);
  TrafficShare second = Begin(alice);
  TrafficShare bob = Begin(Quota({.caller = "bob", .bytes_per_second = 1000}));
  first.Charge(5000);
  EXPECT_FALSE(Ready(second));
  EXPECT_TRUE(Ready(bob));
}

TEST_F(CallerTrafficTest, ANewCallOwesWhatTheLastOneDid) {
  const CallerQuotaPtr alice = Quota({.caller = "alice", .bytes_per_second = 1000});
  Begin(alice).Charge(5000);
  const TrafficShare again = Begin(alice);
  EXPECT_FALSE(Ready(again));
  clock_.Advance(absl::Seconds(4));
  EXPECT_TRUE(Ready(again));
}

TEST_F(CallerTrafficTest, AnotherQuotaHoldsFromThenOn) {
  TrafficShare share = Begin(Quota({.caller = "alice"}));
  share.Charge(1 << 30);
  EXPECT_TRUE(Ready(share)) << "without a bound nothing counts";
  share.Use(Quota({.caller = "alice", .bytes_per_second = 1000}));
  EXPECT_TRUE(Ready(share));
  share.Charge(3000);
  EXPECT_FALSE(Ready(share));
  share.Use(Quota({.caller = "alice"}));
  EXPECT_TRUE(Ready(share));
}

TEST_F(CallerTrafficTest, AnotherRateHoldsForWhatIsOwedToo) {
  TrafficShare first = Begin(Quota({.caller = "alice", .bytes_per_second = 1000}));
  const TrafficShare second = Begin(Quota({.caller = "alice", .bytes_per_second = 1000}));
  first.Charge(101'000);
  clock_.Advance(absl::Seconds(50));
  EXPECT_FALSE(Ready(second)) << "for 50 s more";
  first.Use(Quota({.caller = "alice", .bytes_per_second = 10'000}));
  clock_.Advance(absl::Milliseconds(4999));
  EXPECT_FALSE(Ready(second));
  clock_.Advance(absl::Milliseconds(2));
  EXPECT_TRUE(Ready(first));
  EXPECT_TRUE(Ready(second)) << "of the same caller";
}

TEST_F(CallerTrafficTest, TheRequestOfACallThatIsRefusedCounts) {
  const CallerQuotaPtr alice = Quota({.caller = "alice", .streams = 1, .bytes_per_second = 1000});
  const TrafficShare only = Begin(alice);
  EXPECT_FALSE(traffic_.Begin(alice, 1000).ok());
  EXPECT_TRUE(Ready(only));
  EXPECT_FALSE(traffic_.Begin(alice, 1).ok());
  EXPECT_FALSE(Ready(only));
}

TEST_F(CallerTrafficTest, CallersWhoOweNothingAreForgotten) {
  Begin(Quota({.caller = "owes", .bytes_per_second = 1000})).Charge(1'000'000);
  const TrafficShare open = Begin(Quota({.caller = "open"}));
  for (int i = 0; i < 1000; ++i) Begin(Quota({.caller = absl::StrCat("caller", i)}));
  EXPECT_LE(traffic_.callers(), 128u);
  const TrafficShare owes = Begin(Quota({.caller = "owes", .bytes_per_second = 1000}));
  EXPECT_FALSE(Ready(owes));
}

}  // namespace
}  // namespace gemmd
