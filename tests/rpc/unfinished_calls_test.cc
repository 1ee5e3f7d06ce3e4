// The bound on a connection's unfinished calls.
#include "server/floods/unfinished_calls.h"

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/test_clock.h"

namespace gemmd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kFlooded = 1;
constexpr uint64_t kQuiet = 2;

class UnfinishedCallsTest : public testing::Test {
 protected:
  // Calls that begin, and are handed over; how many might.
  int BeginAndHandOver(uint64_t connection, int calls) {
    int begun = 0;
    for (int i = 0; i < calls; ++i) {
      if (!calls_.Begin(connection, false)) continue;
      calls_.HandOver(connection, "ipv4:10.0.0.1:1");
      ++begun;
    }
    return begun;
  }

  TestClock clock_;
  std::vector<std::string> reported_;
  std::vector<std::string> callers_;
  UnfinishedCalls calls_{3, [this](const std::string& peer) { reported_.push_back(peer); },
                         [this](const std::string& peer, const std::string& caller) {
                           callers_.push_back(peer + " " + caller);
                         },
                         [this] { ++ended_; }};
  int ended_ = 0;
};

TEST_F(UnfinishedCallsTest, TheFirstCallOfAConnectionWaitsUntilItIsHandedOver) {
  EXPECT_FALSE(calls_.FirstCallWaits());
  EXPECT_TRUE(calls_.Begin(kQuiet, true));
  EXPECT_TRUE(calls_.FirstCallWaits());
  calls_.HandOver(kQuiet, "ipv4:10.0.0.1:1");
  EXPECT_FALSE(calls_.FirstCallWaits());
  EXPECT_TRUE(calls_.Begin(kQuiet, true));
  EXPECT_FALSE(calls_.FirstCallWaits()) << "its peer is known";
}

TEST_F(UnfinishedCallsTest, OneAboveTheBoundIsRefusedUntilOneHasEnded) {
  EXPECT_EQ(BeginAndHandOver(kFlooded, 4), 3);
  EXPECT_TRUE(calls_.Begin(kQuiet, false));
  calls_.End(kFlooded);
  EXPECT_TRUE(calls_.Begin(kFlooded, false));
  EXPECT_FALSE(calls_.Begin(kFlooded, false));
}

TEST_F(UnfinishedCallsTest, ACallersConnectionIsToldWithTheFirstOfItsUnfinishedCalls) {
  EXPECT_TRUE(calls_.Begin(kQuiet, false));
  calls_.HandOver(kQuiet, "ipv4:10.0.0.1:1");
  EXPECT_THAT(callers_, IsEmpty());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(calls_.Begin(kQuiet, true, "alice"));
    calls_.HandOver(kQuiet, "ipv4:10.0.0.1:1");
    EXPECT_THAT(callers_, ElementsAre("ipv4:10.0.0.1:1 alice"));
  }
}

TEST_F(UnfinishedCallsTest, TheExcessIsReportedOnce) {
  EXPECT_TRUE(calls_.Begin(kFlooded, false));
  calls_.HandOver(kFlooded, "ipv4:10.0.0.1:1");
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(calls_.Begin(kFlooded, false));
  EXPECT_THAT(reported_, IsEmpty());
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(calls_.Begin(kFlooded, false));
  calls_.HandOver(kFlooded, "ipv4:10.0.0.1:1");
  EXPECT_THAT(reported_, ElementsAre("ipv4:10.0.0.1:1"));
}

// gRPC reads on for a while after the connection was closed, and its calls end meanwhile.
TEST_F(UnfinishedCallsTest, TheExcessIsReportedOnceThoughItsCallsEnd) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(BeginAndHandOver(kFlooded, 4), 3);
    for (int i = 0; i < 3; ++i) calls_.End(kFlooded);
  }
  EXPECT_THAT(reported_, ElementsAre("ipv4:10.0.0.1:1"));
}

TEST_F(UnfinishedCallsTest, ClosedConnectionsAreForgottenInTime) {
  for (uint64_t connection = 0; connection < 1024; ++connection) {
    BeginAndHandOver(connection, 4);
    for (int i = 0; i < 3; ++i) calls_.End(connection);
  }
  EXPECT_EQ(calls_.connections(), 1024);
  clock_.Advance(absl::Minutes(2));
  calls_.Begin(2000, false);
  EXPECT_EQ(calls_.connections(), 1);
}

// Headers come on one thread, calls are handed over on another one, later.
TEST_F(UnfinishedCallsTest, TheExcessIsReportedWhenThePeerIsKnown) {
  for (int i = 0; i < 5; ++i) calls_.Begin(kFlooded, false);
  EXPECT_THAT(reported_, IsEmpty());
  calls_.HandOver(kQuiet, "ipv4:10.0.0.2:1");
  calls_.HandOver(kFlooded, "ipv4:10.0.0.1:1");
  EXPECT_THAT(reported_, ElementsAre("ipv4:10.0.0.1:1"));
}

TEST_F(UnfinishedCallsTest, AConnectionWithoutCallsIsForgotten) {
  EXPECT_EQ(BeginAndHandOver(kFlooded, 3), 3);
  for (int i = 0; i < 2; ++i) calls_.End(kFlooded);
  EXPECT_EQ(calls_.connections(), 1);
  calls_.End(kFlooded);
  EXPECT_EQ(calls_.connections(), 0);
  calls_.End(kFlooded);  // of a call that is not known
  EXPECT_EQ(calls_.connections(), 0);
  EXPECT_EQ(ended_, 4);
}

TEST_F(UnfinishedCallsTest, ConnectionsWhoseCallsNeverEndAreForgottenInTime) {
  for (uint64_t connection = 0; connection < 1024; ++connection) calls_.Begin(connection, false);
  clock_.Advance(absl::Minutes(9));
  calls_.Begin(2000, false);
  EXPECT_EQ(calls_.connections(), 1025);
  clock_.Advance(absl::Minutes(2));
  for (uint64_t connection = 3000; connection < 4100; ++connection) calls_.Begin(connection, false);
  EXPECT_LE(calls_.connections(), 1200);
  EXPECT_GE(calls_.connections(), 1100);
}

// gRPC tells of no end of a call that it drops before it is handed over.
TEST_F(UnfinishedCallsTest, DroppedCallsAreForgottenOnABusyConnection) {
  for (int minute = 0; minute < 20; ++minute) {
    EXPECT_TRUE(calls_.Begin(kFlooded, false)) << minute;  // dropped
    for (int i = 0; i < 6; ++i) {                          // served, meanwhile
      EXPECT_EQ(BeginAndHandOver(kFlooded, 1), 1) << minute;
      calls_.End(kFlooded);
      clock_.Advance(absl::Seconds(10));
    }
  }
  EXPECT_THAT(reported_, IsEmpty());
}

TEST_F(UnfinishedCallsTest, DroppedCallsCountForAMinute) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(calls_.Begin(kFlooded, false));
  clock_.Advance(absl::Seconds(60));
  EXPECT_FALSE(calls_.Begin(kFlooded, false));
  clock_.Advance(absl::Seconds(60));
  EXPECT_TRUE(calls_.Begin(kFlooded, false));
}

TEST_F(UnfinishedCallsTest, CallsThatAreHandedOverCountUntilTheyEnd) {
  EXPECT_EQ(BeginAndHandOver(kFlooded, 3), 3);
  clock_.Advance(absl::Hours(1));
  EXPECT_FALSE(calls_.Begin(kFlooded, false));
  calls_.End(kFlooded);
  EXPECT_TRUE(calls_.Begin(kFlooded, false));
}

// Handed over after it was taken for dropped.
TEST_F(UnfinishedCallsTest, ALateHandOverCounts) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(calls_.Begin(kFlooded, false));
  clock_.Advance(absl::Minutes(5));
  EXPECT_TRUE(calls_.Begin(kFlooded, false));
  for (int i = 0; i < 4; ++i) calls_.HandOver(kFlooded, "ipv4:10.0.0.1:1");
  EXPECT_FALSE(calls_.Begin(kFlooded, false));
}

}  // namespace
}  // namespace gemmd
