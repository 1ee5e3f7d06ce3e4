#include "server/net/unproven_connections.h"

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <string>

#include "gtest/gtest.h"
#include "server/net/listen_socket.h"

namespace gemmd {
namespace {

using Clock = UnprovenConnections::Clock;

// The two ends of a connection.
class Pair {
 public:
  Pair() {
    std::array<int, 2> fds;
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()), 0);
    here_ = UniqueFd(fds[0]);
    there_ = UniqueFd(fds[1]);
  }
  int fd() const { return here_.get(); }
  void Close() { here_ = UniqueFd(); }
  // Whether the other side has seen the end.
  bool ended() const {
    char byte;
    return recv(there_.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }

 private:
  UniqueFd here_, there_;
};

class UnprovenConnectionsTest : public ::testing::Test {
 protected:
  const Clock::time_point start_ = Clock::now();
  const std::chrono::seconds second_{1};
  UnprovenConnections connections_;
};

TEST_F(UnprovenConnectionsTest, TheOldEndAndTheProvenAndTheNewStay) {
  Pair old, proven, young;
  connections_.Add("old", old.fd(), start_);
  connections_.Add("proven", proven.fd(), start_);
  connections_.Add("young", young.fd(), start_ + second_);
  connections_.Prove("proven");
  connections_.Prove("nobody");
  EXPECT_EQ(connections_.EndOldest(start_ + second_), 1u);
  EXPECT_TRUE(old.ended());
  EXPECT_FALSE(proven.ended());
  EXPECT_FALSE(young.ended());
  EXPECT_EQ(connections_.size(), 1u);
}

TEST_F(UnprovenConnectionsTest, WhatIsClosedAlreadyDoesNotCount) {
  Pair closed, open;
  connections_.Add("closed", closed.fd(), start_);
  closed.Close();
  connections_.Add("open", open.fd(), start_);
  EXPECT_EQ(connections_.EndOldest(start_ + second_), 1u);
  EXPECT_TRUE(open.ended());
}

TEST_F(UnprovenConnectionsTest, APeerThatComesAgainIsTheNewConnection) {
  Pair before, now;
  connections_.Add("peer", before.fd(), start_);
  before.Close();
  connections_.Add("peer", now.fd(), start_ + second_);
  EXPECT_EQ(connections_.size(), 1u);
  EXPECT_EQ(connections_.EndOldest(start_ + second_), 0u);
  connections_.Prove("peer");
  EXPECT_EQ(connections_.size(), 0u);
}

TEST_F(UnprovenConnectionsTest, OneWithoutANameIsNotKept) {
  Pair pair;
  connections_.Add("", pair.fd(), start_);
  EXPECT_EQ(connections_.size(), 0u);
}

TEST_F(UnprovenConnectionsTest, NotAllEndAtOnce) {
  Pair pairs[100];
  for (int i = 0; i < 100; ++i) connections_.Add(std::to_string(i), pairs[i].fd(), start_);
  const size_t ended = connections_.EndOldest(start_ + second_);
  EXPECT_GT(ended, 0u);
  EXPECT_LT(ended, 100u);
  EXPECT_TRUE(pairs[0].ended());
  EXPECT_FALSE(pairs[99].ended());
}

TEST_F(UnprovenConnectionsTest, ThoseThatCloseByThemselvesAreForgotten) {
  for (int i = 0; i < 5000; ++i) {
    Pair pair;
    connections_.Add(std::to_string(i), pair.fd(), start_);
  }
  EXPECT_LT(connections_.size(), 2100u);
}

}  // namespace
}  // namespace gemmd
