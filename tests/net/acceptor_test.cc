#include "server/net/acceptor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/base/mutex.h"
#include "server/base/peer_name.h"
#include "tests/net/loopback.h"

namespace gemmd {
namespace {

bool Eventually(const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

// Keeps what it is given.
class AcceptorTest : public ::testing::Test {
 protected:
  void Start(AcceptorLimits limits) {
    auto listening = Listen("--address", {.host = "127.0.0.1"});
    ASSERT_TRUE(listening.ok()) << listening.status();
    listening_ = *std::move(listening);
    acceptor_ = std::make_unique<Acceptor>(std::vector<int>{listening_.fds.front().get()}, limits);
    acceptor_->Start(
        [this](UniqueFd connection) {
          MutexLock lock(mutex_);
          taken_.push_back(std::move(connection));
        },
        [this] { return established_.load(); },
        [this](const std::string& peer) {
          asked_ = peer;
          return may_serve_.load();
        });
  }
  ~AcceptorTest() override {
    if (acceptor_ != nullptr) acceptor_->Stop();
  }

  size_t Taken() {
    MutexLock lock(mutex_);
    return taken_.size();
  }
  void CloseTaken() {
    MutexLock lock(mutex_);
    taken_.clear();
  }
  int port() const { return listening_.address.port; }

  Mutex mutex_;
  std::vector<UniqueFd> taken_;
  std::atomic<int64_t> established_{0};
  std::atomic<bool> may_serve_{true};
  std::string asked_;
  Listening listening_;
  std::unique_ptr<Acceptor> acceptor_;
};

TEST_F(AcceptorTest, OneMoreThanTheBoundIsClosedAtOnceAndPlacesComeBack) {
  Start({.connections = 2});
  const UniqueFd first = ConnectTo(port());
  const UniqueFd second = ConnectTo(port());
  ASSERT_TRUE(Eventually([this] { return Taken() == 2; }));
  EXPECT_TRUE(ClosedByPeer(ConnectTo(port())));
  EXPECT_FALSE(ClosedByPeer(first, absl::ZeroDuration()));
  ConnectionStats stats = acceptor_->Stats();
  EXPECT_EQ(stats.open, 2);
  EXPECT_EQ(stats.limit, 2);
  EXPECT_EQ(stats.accepted, 2);
  EXPECT_EQ(stats.refused, 1);

  CloseTaken();
  EXPECT_EQ(acceptor_->Stats().open, 0);
  const UniqueFd third = ConnectTo(port());
  EXPECT_TRUE(Eventually([this] { return Taken() == 1; }));
}

TEST_F(AcceptorTest, WhereItIsFullWhatNobodyHasProvenMakesRoom) {
  Start({.connections = 2, .proof = absl::Milliseconds(1)});
  const UniqueFd proven = ConnectTo(port());
  ASSERT_TRUE(Eventually([this] { return Taken() == 1; }));
  {
    MutexLock lock(mutex_);
    acceptor_->Prove(PeerName(taken_.front().get()));
  }
  const UniqueFd silent = ConnectTo(port());
  ASSERT_TRUE(Eventually([this] { return Taken() == 2; }));
  EXPECT_TRUE(Eventually([&] {
    return ClosedByPeer(ConnectTo(port())) && ClosedByPeer(silent, absl::ZeroDuration());
  }));
  EXPECT_FALSE(ClosedByPeer(proven, absl::ZeroDuration()));
  EXPECT_EQ(acceptor_->Stats().made_room, 1);
}

TEST_F(AcceptorTest, OneMoreHandshakeThanTheBoundIsClosedAtOnceUntilOneEnds) {
  Start({.connections = 10, .handshakes = 2});
  const UniqueFd first = ConnectTo(port());
  const UniqueFd second = ConnectTo(port());
  ASSERT_TRUE(Eventually([this] { return Taken() == 2; }));
  EXPECT_TRUE(ClosedByPeer(ConnectTo(port())));
  ConnectionStats stats = acceptor_->Stats();
  EXPECT_EQ(stats.open, 2);
  EXPECT_EQ(stats.handshaking, 2);
  EXPECT_EQ(stats.handshake_limit, 2);
  EXPECT_EQ(stats.accepted, 2);
  EXPECT_EQ(stats.refused, 0);
  EXPECT_EQ(stats.refused_handshakes, 1);

  established_ = 1;
  std::vector<UniqueFd> more;
  EXPECT_TRUE(Eventually([&] {
    more.push_back(ConnectTo(port()));
    return Taken() == 3;
  }));
  EXPECT_EQ(acceptor_->Stats().handshaking, 2);
}

TEST_F(AcceptorTest, APeerThatMayNotBeServedIsClosedAtOnce) {
  Start({.connections = 10});
  may_serve_ = false;
  {
    const UniqueFd refused = ConnectTo(port());
    EXPECT_TRUE(ClosedByPeer(refused));
    EXPECT_EQ(acceptor_->Stats().refused_peers, 1);
    EXPECT_EQ(acceptor_->Stats().accepted, 0);
  }
  may_serve_ = true;
  const UniqueFd served = ConnectTo(port());
  ASSERT_TRUE(Eventually([this] { return Taken() == 1; }));
  MutexLock lock(mutex_);
  EXPECT_EQ(asked_, PeerName(taken_.front().get()));
}

TEST_F(AcceptorTest, ShutsDownAConnectionByItsPeerAndDiscardsWhatItHadSent) {
  Start({.connections = 10});
  const UniqueFd kept = ConnectTo(port());
  ASSERT_TRUE(Eventually([this] { return Taken() == 1; }));
  const UniqueFd ended = ConnectTo(port());
  ASSERT_TRUE(Eventually([this] { return Taken() == 2; }));
  ASSERT_EQ(send(ended.get(), "unread", 6, 0), 6);
  const auto [name, taken] = [this] {
    MutexLock lock(mutex_);
    return std::pair(PeerName(taken_[1].get()), taken_[1].get());
  }();
  pollfd come{.fd = taken, .events = POLLIN};
  ASSERT_EQ(poll(&come, 1, 30'000), 1);
  EXPECT_TRUE(acceptor_->ShutDown(name));
  EXPECT_TRUE(ClosedByPeer(ended));
  EXPECT_FALSE(ClosedByPeer(kept, absl::ZeroDuration()));
  char byte;
  EXPECT_EQ(recv(taken, &byte, 1, 0), 0);
  EXPECT_FALSE(acceptor_->ShutDown("ipv4:10.0.0.1:1"));
  EXPECT_FALSE(acceptor_->ShutDown(""));
}

TEST_F(AcceptorTest, KnowsWhatIsYetToBeReadAndWhoseClientHasLeft) {
  Start({.connections = 10});
  const UniqueFd stays = ConnectTo(port());
  ASSERT_TRUE(Eventually([this] { return Taken() == 1; }));
  UniqueFd leaves = ConnectTo(port());
  ASSERT_TRUE(Eventually([this] { return Taken() == 2; }));
  EXPECT_TRUE(acceptor_->UnreadAbove(0).empty());
  ASSERT_EQ(send(stays.get(), "four", 4, 0), 4);
  ASSERT_EQ(send(leaves.get(), "seven..", 7, 0), 7);
  EXPECT_TRUE(Eventually([this] { return acceptor_->UnreadAbove(3).size() == 2; }));
  EXPECT_EQ(acceptor_->UnreadAbove(4).size(), 1u);
  EXPECT_FALSE(acceptor_->UnreadAbove(4).front().left);
  leaves = UniqueFd();
  EXPECT_TRUE(Eventually([this] { return acceptor_->UnreadAbove(4).front().left; }));
  const GivenSockets::Unread unread = acceptor_->UnreadAbove(4).front();
  EXPECT_EQ(unread.bytes, 7);
  {
    MutexLock lock(mutex_);
    EXPECT_EQ(unread.peer, PeerName(taken_[1].get()));
  }
  CloseTaken();
  EXPECT_TRUE(acceptor_->UnreadAbove(0).empty());
}

TEST_F(AcceptorTest, OldConnectionsCountAsLeaving) {
  Start({.connections = 2, .age = absl::Milliseconds(1)});
  const UniqueFd first = ConnectTo(port());
  EXPECT_TRUE(Eventually([this] { return acceptor_->Stats().leaving == 1; }));
  CloseTaken();
  EXPECT_EQ(acceptor_->Stats().leaving, 0);
}

TEST_F(AcceptorTest, EndsTheConnectionsOfOthersButNoOtherDescriptor) {
  Start({.connections = 3});
  const UniqueFd first = ConnectTo(port());
  const UniqueFd second = ConnectTo(port());
  ASSERT_TRUE(Eventually([this] { return Taken() == 2; }));
  // The first one's number becomes that of another socket.
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const UniqueFd here(pair[0]);
  const UniqueFd there(pair[1]);
  {
    MutexLock lock(mutex_);
    ASSERT_GE(dup2(there.get(), taken_.front().get()), 0);
  }
  acceptor_->ShutDownConnections();
  EXPECT_TRUE(ClosedByPeer(second));
  EXPECT_FALSE(ClosedByPeer(here, absl::ZeroDuration()));
}

TEST_F(AcceptorTest, ADescriptorWithTheNumberOfAClosedConnectionIsNoConnection) {
  Start({.connections = 2});
  const UniqueFd first = ConnectTo(port());
  ASSERT_TRUE(Eventually([this] { return Taken() == 1; }));
  const int number = [this] {
    MutexLock lock(mutex_);
    return taken_.front().get();
  }();
  CloseTaken();
  ASSERT_GE(fcntl(listening_.fds.front().get(), F_DUPFD_CLOEXEC, number), number);
  const UniqueFd other(number);
  EXPECT_EQ(acceptor_->Stats().open, 0);
}

TEST_F(AcceptorTest, WantOfDescriptorsIsNotTheEnd) {
  Start({.connections = 1000});
  const UniqueFd before = ConnectTo(port());
  ASSERT_TRUE(Eventually([this] { return Taken() == 1; }));
  const UniqueFd waiting(socket(AF_INET, SOCK_STREAM, 0));
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none = {.rlim_cur = 3, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_storage at{};
  socklen_t length = sizeof(at);
  ASSERT_EQ(getsockname(listening_.fds.front().get(), reinterpret_cast<sockaddr*>(&at), &length),
            0);
  ASSERT_EQ(connect(waiting.get(), reinterpret_cast<const sockaddr*>(&at), length), 0);
  const bool failed = Eventually([this] { return acceptor_->Stats().failures > 1; });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(failed);
  EXPECT_TRUE(acceptor_->Health().ok());
  EXPECT_TRUE(Eventually([this] { return Taken() == 2; }));
}

TEST_F(AcceptorTest, AListeningSocketThatIsNoMoreIsTold) {
  Start({.connections = 2});
  EXPECT_TRUE(acceptor_->Health().ok());
  shutdown(listening_.fds.front().get(), SHUT_RDWR);
  EXPECT_TRUE(Eventually([this] { return !acceptor_->Health().ok(); }));
  EXPECT_EQ(acceptor_->Health().code(), absl::StatusCode::kUnavailable);
}

TEST(DescriptorsTest, ConnectionsLeaveRoomForTheRest) {
  EXPECT_EQ(ConnectionsFor(32), 1);
  EXPECT_EQ(ConnectionsFor(256), 128);
  EXPECT_EQ(ConnectionsFor(1024), 768);
  EXPECT_EQ(ConnectionsFor(65'536), 64'512);
}

TEST_F(AcceptorTest, TellsWhatConnectionsHaveMoved) {
  Start({.connections = 2});
  const UniqueFd client = ConnectTo(listening_.address.port);
  EXPECT_TRUE(SendAll(client, std::string(1000, 'x')));
  ASSERT_TRUE(Eventually([&] { return Taken() == 1; }));
  {
    MutexLock lock(mutex_);
    EXPECT_TRUE(SendAll(taken_[0], std::string(300, 'y')));
  }
  ASSERT_TRUE(Eventually([&] {
    const std::vector<GivenSockets::Traffic> all = acceptor_->Traffic();
    return all.size() == 1 && all[0].received == 1000 && all[0].sent >= 300;
  }));
  MutexLock lock(mutex_);
  EXPECT_EQ(acceptor_->Traffic()[0].peer, PeerName(taken_[0].get()));
}

}  // namespace
}  // namespace gemmd
