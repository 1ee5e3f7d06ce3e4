// What a connection may have unfinished.
#include "server/rpc/watch/unfinished_calls.h"

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
  TestClock clock_;
  std::vector<std::string> reported_;
  UnfinishedCalls calls_{3, [this](const std::string& peer) { reported_.push_back(peer); }};
};

TEST_F(UnfinishedCallsTest, OneAboveTheBoundIsRefusedUntilOneHasEnded) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(calls_.Begin(kFlooded));
  EXPECT_FALSE(calls_.Begin(kFlooded));
  EXPECT_TRUE(calls_.Begin(kQuiet));
  calls_.End(kFlooded);
  EXPECT_TRUE(calls_.Begin(kFlooded));
  EXPECT_FALSE(calls_.Begin(kFlooded));
}

TEST_F(UnfinishedCallsTest, TheExcessIsReportedOnce) {
  EXPECT_TRUE(calls_.Begin(kFlooded));
  calls_.LearnPeer(kFlooded, "ipv4:10.0.0.1:1");
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(calls_.Begin(kFlooded));
  EXPECT_THAT(reported_, IsEmpty());
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(calls_.Begin(kFlooded));
  calls_.LearnPeer(kFlooded, "ipv4:10.0.0.1:1");
  EXPECT_THAT(reported_, ElementsAre("ipv4:10.0.0.1:1"));
}

// gRPC reads on for a while after the connection was closed, and its calls end meanwhile.
TEST_F(UnfinishedCallsTest, TheExcessIsReportedOnceThoughItsCallsEnd) {
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) calls_.Begin(kFlooded);
    calls_.LearnPeer(kFlooded, "ipv4:10.0.0.1:1");
    for (int i = 0; i < 3; ++i) calls_.End(kFlooded);
  }
  EXPECT_THAT(reported_, ElementsAre("ipv4:10.0.0.1:1"));
}

TEST_F(UnfinishedCallsTest, ClosedConnectionsAreForgottenInTime) {
  for (uint64_t connection = 0; connection < 1024; ++connection) {
    for (int i = 0; i < 4; ++i) calls_.Begin(connection);
    for (int i = 0; i < 3; ++i) calls_.End(connection);
  }
  EXPECT_EQ(calls_.connections(), 1024);
  clock_.Advance(absl::Minutes(2));
  calls_.Begin(2000);
  EXPECT_EQ(calls_.connections(), 1);
}

// Headers come on one thread, calls are handed over on another one, later.
TEST_F(UnfinishedCallsTest, TheExcessIsReportedWhenThePeerIsKnown) {
  for (int i = 0; i < 5; ++i) calls_.Begin(kFlooded);
  EXPECT_THAT(reported_, IsEmpty());
  calls_.LearnPeer(kQuiet, "ipv4:10.0.0.2:1");
  calls_.LearnPeer(kFlooded, "ipv4:10.0.0.1:1");
  EXPECT_THAT(reported_, ElementsAre("ipv4:10.0.0.1:1"));
}

TEST_F(UnfinishedCallsTest, AConnectionWithoutCallsIsForgotten) {
  for (int i = 0; i < 3; ++i) calls_.Begin(kFlooded);
  for (int i = 0; i < 2; ++i) calls_.End(kFlooded);
  EXPECT_EQ(calls_.connections(), 1);
  calls_.End(kFlooded);
  EXPECT_EQ(calls_.connections(), 0);
  calls_.End(kFlooded);  // of a call that is not known
  EXPECT_EQ(calls_.connections(), 0);
}

TEST_F(UnfinishedCallsTest, ConnectionsWhoseCallsNeverEndAreForgottenInTime) {
  for (uint64_t connection = 0; connection < 1024; ++connection) calls_.Begin(connection);
  clock_.Advance(absl::Minutes(9));
  calls_.Begin(2000);
  EXPECT_EQ(calls_.connections(), 1025);
  clock_.Advance(absl::Minutes(2));
  for (uint64_t connection = 3000; connection < 4100; ++connection) calls_.Begin(connection);
  EXPECT_LE(calls_.connections(), 1200);
  EXPECT_GE(calls_.connections(), 1100);
}

}  // namespace
}  // namespace gemmd
