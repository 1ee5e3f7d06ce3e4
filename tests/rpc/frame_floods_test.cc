// Connections that send much that no call wants.
#include "server/floods/frame_floods.h"

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/test_clock.h"

namespace gemmd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kMessage = 1000 << 10;
constexpr int64_t kKiB64 = 64 << 10;
const std::string kPeer = "ipv4:10.0.0.1:1000";

class FrameFloodsTest : public testing::Test {
 protected:
  FrameFloodsTest() { floods_.Look(); }

  // What the connection sends and receives, in so many parts a second each.
  void Moves(int64_t received, int64_t sent = 0, int seconds = 1) {
    for (int i = 0; i < seconds; ++i) {
      clock_.Advance(absl::Seconds(1));
      GivenSockets::Traffic& its = traffic_[kPeer];
      its.peer = kPeer;
      its.received += received;
      its.sent += sent;
      floods_.Look();
    }
  }

  std::vector<GivenSockets::Traffic> Traffic() const {
    std::vector<GivenSockets::Traffic> all;
    for (const auto& [peer, traffic] : traffic_) all.push_back(traffic);
    return all;
  }

  TestClock clock_;
  std::map<std::string, GivenSockets::Traffic> traffic_;
  std::optional<TransportCalls> calls_ = TransportCalls();
  bool first_call_waits_ = false;
  std::vector<std::string> closed_;
  std::vector<FrameFlood> told_;
  FrameFloods floods_{kMessage,
                      {.traffic = [this] { return Traffic(); },
                       .calls = [this](const std::string&) { return calls_; },
                       .first_call_waits = [this] { return first_call_waits_; },
                       .close = [this](const std::string& peer) { closed_.push_back(peer); },
                       .on_flood = [this](const FrameFlood& flood) { told_.push_back(flood); }}};
};

TEST_F(FrameFloodsTest, AStrangerThatFloodsIsClosedAndItsAddressRefused) {
  Moves(FrameFloods::kMostOfStrangers);
  EXPECT_THAT(closed_, IsEmpty());
  Moves(FrameFloods::kRateOfStrangers + kKiB64 + 1);
  EXPECT_THAT(closed_, ElementsAre(kPeer));
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].peer, kPeer);
  EXPECT_EQ(told_[0].bytes, FrameFloods::kMostOfStrangers + 1);
  EXPECT_EQ(told_[0].closed, 1);
  Moves(1 << 20);
  EXPECT_EQ(closed_.size(), 1u) << "gRPC still reads what had come";
}

TEST_F(FrameFloodsTest, ALittleASecondIsForgivenForEver) {
  Moves(FrameFloods::kRateOfStrangers, 0, 3600);
  EXPECT_THAT(closed_, IsEmpty());
  Moves(0, 0, 100);
  Moves(FrameFloods::kMostOfStrangers + FrameFloods::kRateOfStrangers);
  EXPECT_THAT(closed_, IsEmpty()) << "but none is saved up";
  Moves(FrameFloods::kRateOfStrangers + 1);
  EXPECT_THAT(closed_, ElementsAre(kPeer));
}

TEST_F(FrameFloodsTest, AKnownCallersConnectionIsClosedLater) {
  const auto read = floods_.CallBegins(kPeer);
  calls_->begun = 7;  // all over, with requests that gRPC may have refused
  Moves(7 * kMessage + FrameFloods::kMostOfKnown + FrameFloods::kRateOfKnown);
  EXPECT_THAT(closed_, IsEmpty());
  Moves(FrameFloods::kRateOfKnown + 1);
  EXPECT_THAT(closed_, ElementsAre(kPeer));
}

TEST_F(FrameFloodsTest, MessagesThatCallsReadAreWanted) {
  const auto read = floods_.CallBegins(kPeer);
  for (int i = 0; i < 100; ++i) {
    read->fetch_add(64 << 20);
    Moves(72 << 20);  // with what is around them
  }
  EXPECT_THAT(closed_, IsEmpty());
  Moves(5 << 20);
  EXPECT_THAT(closed_, ElementsAre(kPeer)) << "though much was read before";
}

TEST_F(FrameFloodsTest, AMessageMayComeForEachLiveCallBeforeItIsRead) {
  const auto read = floods_.CallBegins(kPeer);
  calls_ = {.begun = 100, .unfinished = 100};
  Moves(100 * kMessage, 0, 1);
  EXPECT_THAT(closed_, IsEmpty());
  read->fetch_add(100 * kMessage);
  Moves(0);
  calls_->unfinished = 0;
  Moves(FrameFloods::kMostOfKnown);
  EXPECT_THAT(closed_, IsEmpty());
}

TEST_F(FrameFloodsTest, WhatIsReadWhileALookIsUnderWayCountsOnce) {
  const auto read = floods_.CallBegins(kPeer);
  for (int i = 0; i < 100; ++i) {
    // After the look: these bytes are those of the next one.
    Moves(1 << 20);
    read->fetch_add(1 << 20);
  }
  EXPECT_THAT(closed_, IsEmpty());
}

TEST_F(FrameFloodsTest, ALiveCallMaySendOnAfterItsFirstMessageWasRead) {
  const auto read = floods_.CallBegins(kPeer);
  calls_ = {.begun = 1, .unfinished = 1};
  for (int i = 0; i < 10; ++i) {
    Moves(FrameFloods::kMostOfKnown + kMessage, 0, 1);
    EXPECT_THAT(closed_, IsEmpty());
    read->fetch_add(FrameFloods::kMostOfKnown + kMessage);
    Moves(0);
  }
}

// Such as calls that are refused, or whose deadline passes in the middle of their request.
TEST_F(FrameFloodsTest, RequestsThatAreNotReadAreForgivenOnAKnownConnection) {
  const auto read = floods_.CallBegins(kPeer);
  for (int i = 0; i < 1000; ++i) {
    calls_->begun += 4;
    Moves(4 * kMessage);
  }
  EXPECT_THAT(closed_, IsEmpty());
  Moves(0, 0, 100'000);
  Moves(FrameFloods::kMostOfKnown + FrameFloods::kRateOfKnown + 1);
  EXPECT_THAT(closed_, ElementsAre(kPeer)) << "but not those of long ago";
}

TEST_F(FrameFloodsTest, AClientThatReadsMuchMaySayOften) {
  const auto read = floods_.CallBegins(kPeer);
  Moves(256 << 20, 1024 << 20, 10);
  EXPECT_THAT(closed_, IsEmpty());
}

// Its peer is not known before its request is there.
TEST_F(FrameFloodsTest, TheFirstUploadOfAConnectionIsAwaited) {
  first_call_waits_ = true;
  calls_ = {.begun = 1, .unfinished = 1};
  Moves(FrameFloods::kMostOfStrangers + kMessage);
  EXPECT_THAT(closed_, IsEmpty());
  first_call_waits_ = false;
  Moves(FrameFloods::kRateOfStrangers);
  EXPECT_THAT(closed_, ElementsAre(kPeer)) << "no such call waits: the one of this is a stranger's";
}

TEST_F(FrameFloodsTest, ClosedConnectionsAreForgotten) {
  Moves(FrameFloods::kMostOfStrangers);
  auto read = floods_.CallBegins("ipv4:10.0.0.2:1");
  EXPECT_EQ(floods_.connections(), 2u);
  traffic_.clear();
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(absl::Seconds(1));
    floods_.Look();
  }
  EXPECT_EQ(floods_.connections(), 0u);
  Moves(1);
  EXPECT_THAT(closed_, IsEmpty());
}

TEST_F(FrameFloodsTest, AnotherConnectionOfAPeerBeginsAnew) {
  const auto read = floods_.CallBegins(kPeer);
  Moves(FrameFloods::kMostOfKnown);
  traffic_.clear();
  Moves(FrameFloods::kMostOfStrangers + FrameFloods::kRateOfStrangers + 1);
  EXPECT_THAT(closed_, ElementsAre(kPeer)) << "no call of it was let through";
}

}  // namespace
}  // namespace gemmd
