// Calls that are not over, added up over connections.
#include "server/floods/call_backlog.h"

#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/test_clock.h"

namespace gemmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kMost = 1000;

std::string PeerOf(int host, int port) { return absl::StrCat("ipv4:10.0.0.", host, ":", port); }

class CallBacklogTest : public testing::Test {
 protected:
  // A connection with so many unfinished calls.
  intptr_t Connect(const std::string& peer, int64_t calls) {
    const intptr_t id = ++last_;
    transports_[id] = {.id = id, .peer = peer};
    calls_[id] = {.begun = calls, .unfinished = calls};
    return id;
  }

  std::vector<Transport> Opened(intptr_t after) {
    std::vector<Transport> opened;
    for (const auto& [id, transport] : transports_) {
      if (id > after) opened.push_back(transport);
    }
    return opened;
  }

  std::optional<TransportCalls> Calls(intptr_t id) {
    ++reads_;
    const auto found = calls_.find(id);
    return found == calls_.end() ? std::nullopt : std::optional(found->second);
  }

  bool Serves(const std::string& peer) { return backlog_.MayServe(peer); }

  TestClock clock_;
  intptr_t last_ = 0;
  int reads_ = 0;
  std::map<intptr_t, Transport> transports_;
  std::map<intptr_t, TransportCalls> calls_;
  std::vector<GivenSockets::Unread> unread_;
  std::vector<std::string> closed_;
  std::vector<TooManyCalls> told_;
  CallBacklog backlog_{kMost,
                       {.opened = [this](intptr_t after) { return Opened(after); },
                        .calls = [this](intptr_t id) { return Calls(id); },
                        .unread = [this](int64_t) { return unread_; },
                        .close =
                            [this](const std::string& peer) {
                              closed_.push_back(peer);
                              return true;
                            },
                        .on_excess = [this](const TooManyCalls& told) { told_.push_back(told); }}};
};

TEST_F(CallBacklogTest, AnAddressMayHaveItsBoundOverAllOfItsConnections) {
  for (int port = 1; port <= 4; ++port) Connect(PeerOf(1, port), kMost / 4);
  backlog_.Look();
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_TRUE(Serves(PeerOf(1, 9)));
  EXPECT_EQ(backlog_.calls(), kMost);
}

TEST_F(CallBacklogTest, AboveItTheLargestConnectionsAreClosedAndTheAddressRefused) {
  Connect(PeerOf(1, 1), 10);
  Connect(PeerOf(1, 2), 600);
  Connect(PeerOf(1, 3), 500);
  Connect(PeerOf(2, 1), 900);
  backlog_.Look();
  EXPECT_THAT(closed_, ElementsAre(PeerOf(1, 2), PeerOf(1, 3)));
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].address, "10.0.0.1");
  EXPECT_EQ(told_[0].caller, "");
  EXPECT_EQ(told_[0].calls, 1110);
  EXPECT_EQ(told_[0].bound, kMost);
  EXPECT_EQ(told_[0].closed, 2);
  EXPECT_FALSE(Serves(PeerOf(1, 9)));
  EXPECT_TRUE(Serves(PeerOf(2, 9)));
}

// gRPC destroys the calls of a closed connection when it comes to them.
TEST_F(CallBacklogTest, TheAddressIsRefusedUntilItsCallsAreOverAndThenForAWhile) {
  const intptr_t flood = Connect(PeerOf(1, 1), 2 * kMost);
  for (int i = 0; i < 10; ++i) {
    backlog_.Look();
    clock_.Advance(absl::Seconds(1));
    EXPECT_FALSE(Serves(PeerOf(1, 2)));
  }
  EXPECT_THAT(closed_, ElementsAre(PeerOf(1, 1)));  // once
  EXPECT_EQ(told_.size(), 1u);
  calls_.erase(flood);
  backlog_.Look();
  EXPECT_FALSE(Serves(PeerOf(1, 2)));
  clock_.Advance(absl::Seconds(2));
  backlog_.Look();
  EXPECT_TRUE(Serves(PeerOf(1, 2)));
  EXPECT_EQ(backlog_.calls(), 0);
}

// gRPC will read it, and have its calls.
TEST_F(CallBacklogTest, WhatIsYetToBeReadBeforeTheFirstCallCounts) {
  constexpr int64_t kMegabyte = 1 << 20;
  Connect(PeerOf(1, 1), 0);
  for (int port = 1; port <= 16; ++port) unread_.push_back({PeerOf(1, port), kMegabyte});
  for (int port = 17; port <= 100; ++port) unread_.push_back({PeerOf(1, port), 1025});
  backlog_.Look();
  EXPECT_EQ(backlog_.calls(), 16 * (kMost / 16));
  EXPECT_TRUE(Serves(PeerOf(1, 200)));
  unread_.push_back({PeerOf(1, 101), kMegabyte});
  backlog_.Look();
  EXPECT_FALSE(Serves(PeerOf(1, 200)));
  EXPECT_TRUE(Serves(PeerOf(2, 1)));
}

// It may be payload, unless the client has closed the connection: then nothing of it is of use.
TEST_F(CallBacklogTest, WhatIsYetToBeReadLaterDoesNotCountButOfAClosedConnection) {
  for (int port = 1; port <= 10; ++port) {
    const intptr_t id = Connect(PeerOf(1, port), 0);
    calls_[id].begun = 1;
    unread_.push_back({PeerOf(1, port), 1 << 20});
  }
  backlog_.Look();
  EXPECT_EQ(backlog_.calls(), 0);
  for (GivenSockets::Unread& one : unread_) one.left = true;
  unread_.pop_back();
  unread_.pop_back();
  backlog_.Look();
  EXPECT_EQ(backlog_.calls(), 8 * (kMost / 8));
  EXPECT_TRUE(Serves(PeerOf(1, 200))) << "clients that end in mid-upload are no flood";
}

TEST_F(CallBacklogTest, AKnownCallersCallsAreNotThoseOfItsAddress) {
  Connect(PeerOf(1, 1), 700);
  Connect(PeerOf(1, 2), 700);
  backlog_.Know(PeerOf(1, 1), "alice");
  backlog_.Look();
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_TRUE(backlog_.MayBegin("alice").ok());
}

TEST_F(CallBacklogTest, AKnownCallerIsRefusedBeforeItsConnectionsAreClosed) {
  const intptr_t first = Connect(PeerOf(1, 1), 600);
  Connect(PeerOf(2, 1), 500);
  Connect(PeerOf(2, 2), 1);
  backlog_.Know(PeerOf(1, 1), "alice");
  backlog_.Know(PeerOf(2, 1), "alice");
  backlog_.Know(PeerOf(2, 2), "bob");
  backlog_.Look();
  EXPECT_THAT(closed_, IsEmpty());
  const absl::Status refused = backlog_.MayBegin("alice");
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("max-calls-per-caller: caller \"alice\" has 1100"));
  EXPECT_TRUE(backlog_.MayBegin("bob").ok());
  EXPECT_TRUE(backlog_.MayBegin("").ok());

  calls_[first].unfinished = 800;
  backlog_.Look();
  EXPECT_THAT(closed_, ElementsAre(PeerOf(1, 1)));
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].caller, "alice");
  EXPECT_FALSE(Serves(PeerOf(1, 9)));
  EXPECT_TRUE(Serves(PeerOf(2, 9)));

  calls_.erase(first);
  backlog_.Look();
  EXPECT_TRUE(backlog_.MayBegin("alice").ok());
}

TEST_F(CallBacklogTest, AllTogetherMayHaveEightTimesAsManyAndThoseWithTheMostGoFirst) {
  for (int host = 1; host <= 9; ++host) Connect(PeerOf(host, 1), 900);
  Connect(PeerOf(100, 1), 10);
  backlog_.Look();
  EXPECT_EQ(closed_.size(), 9u);
  EXPECT_TRUE(Serves(PeerOf(100, 2)));
}

TEST_F(CallBacklogTest, ManyAcceptedConnectionsAreLookedAtBeforeTheNext) {
  for (int port = 1; port <= 40; ++port) {
    Connect(PeerOf(1, port), 100);
    if (!Serves(PeerOf(1, port))) return;
  }
  ADD_FAILURE() << "40 connections with 100 calls each, " << kMost << " allowed";
}

// There may be thousands.
TEST_F(CallBacklogTest, ConnectionsWithoutCallsAreReadAFewAtATime) {
  std::vector<intptr_t> quiet;
  for (int port = 1; port <= 500; ++port) quiet.push_back(Connect(PeerOf(1, port), 0));
  backlog_.Look();  // they are new
  reads_ = 0;
  backlog_.Look();
  EXPECT_LE(reads_, 64);
  for (const intptr_t id : {quiet.front(), quiet[250], quiet.back()}) calls_[id].unfinished = kMost;
  for (int i = 0; i < 9; ++i) backlog_.Look();
  EXPECT_EQ(closed_.size(), 3u) << "each had its turn";
}

TEST_F(CallBacklogTest, LooksByItselfWhenCallsAddUp) {
  Connect(PeerOf(1, 1), 2 * kMost);
  backlog_.Start();
  for (int i = 0; i < 300; ++i) backlog_.Began();
  while (Serves(PeerOf(1, 2))) {
    clock_.Advance(absl::Milliseconds(100));
    std::this_thread::yield();
  }
  backlog_.Stop();
}

// A look for a connection that was accepted found the excess, while the thread slept.
TEST(CallBacklogThreadTest, AnAddressIsServedAgainWhoeverFoundItsExcess) {
  TestClock clock;
  std::atomic<bool> over{false};
  const Transport flood = {.id = 1, .peer = PeerOf(1, 1)};
  CallBacklog backlog(kMost, {.opened =
                                  [&](intptr_t after) {
                                    return after == 0 ? std::vector{flood}
                                                      : std::vector<Transport>{};
                                  },
                              .calls = [&](intptr_t) -> std::optional<TransportCalls> {
                                if (over) return std::nullopt;
                                return TransportCalls{.begun = 1, .unfinished = 2 * kMost};
                              },
                              .unread = [](int64_t) { return std::vector<GivenSockets::Unread>(); },
                              .close = [](const std::string&) { return true; },
                              .on_excess = [](const TooManyCalls&) {}});
  backlog.Start();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the thread finds nothing to do
  backlog.Look();
  EXPECT_FALSE(backlog.MayServe(PeerOf(1, 2)));
  over = true;
  bool served = false;
  for (int i = 0; i < 300 && !served; ++i) {
    clock.Advance(absl::Milliseconds(100));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    served = backlog.MayServe(PeerOf(1, 2));
  }
  EXPECT_TRUE(served);
}

TEST(CallBacklogAddressTest, IsAHostOrANetworkOfIpv6) {
  EXPECT_EQ(CallBacklog::AddressOf("ipv4:10.1.2.3:40000"), "10.1.2.3");
  EXPECT_EQ(CallBacklog::AddressOf("ipv6:%5B2001:db8:1:2:3::4%5D:40000"), "2001:db8:1:2::/64");
  EXPECT_EQ(CallBacklog::AddressOf("ipv6:%5B::1%5D:40000"), "::/64");
  EXPECT_EQ(CallBacklog::AddressOf("unix:"), "");
  EXPECT_EQ(CallBacklog::AddressOf(""), "");
}

TEST_F(CallBacklogTest, AnAddressMayBeRefusedForOtherReasons) {
  backlog_.Refuse(PeerOf(1, 1), absl::Seconds(10));
  EXPECT_FALSE(Serves(PeerOf(1, 2)));
  EXPECT_TRUE(Serves(PeerOf(2, 1)));
  clock_.Advance(absl::Seconds(5));
  backlog_.Refuse(PeerOf(1, 1), absl::Seconds(2));
  clock_.Advance(absl::Seconds(4));
  backlog_.Look();
  EXPECT_FALSE(Serves(PeerOf(1, 2))) << "the longer time holds";
  clock_.Advance(absl::Seconds(1));
  backlog_.Look();
  EXPECT_TRUE(Serves(PeerOf(1, 2)));
}

TEST_F(CallBacklogTest, TellsOfTheCallsOfAPeer) {
  EXPECT_FALSE(backlog_.CallsOf(PeerOf(1, 1)).has_value());
  transports_.erase(Connect(PeerOf(1, 1), 3));
  EXPECT_FALSE(backlog_.CallsOf(PeerOf(1, 1)).has_value());
  Connect(PeerOf(1, 1), 7);
  ASSERT_TRUE(backlog_.CallsOf(PeerOf(1, 1)).has_value());
  EXPECT_EQ(backlog_.CallsOf(PeerOf(1, 1))->unfinished, 7) << "of the latest connection";
}

}  // namespace
}  // namespace gemmd
