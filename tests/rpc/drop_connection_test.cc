// Which connections the server closes.
#include "server/rpc/watch/drop_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/net/loopback.h"

namespace gemmd {
namespace {

sockaddr_in OwnAddress(const UniqueFd& socket) {
  sockaddr_in own{};
  socklen_t size = sizeof(own);
  EXPECT_EQ(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size), 0);
  return own;
}

class DropConnectionTest : public testing::Test {
 protected:
  DropConnectionTest() {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(any)), 0);
    EXPECT_EQ(listen(listener_.get(), 1), 0);
    client_ = ConnectTo(ntohs(OwnAddress(listener_).sin_port));
    accepted_ = UniqueFd(accept(listener_.get(), nullptr, nullptr));
    peer_ = absl::StrCat("ipv4:127.0.0.1:", ntohs(OwnAddress(client_).sin_port));
  }

  UniqueFd listener_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  UniqueFd client_;
  UniqueFd accepted_;
  std::string peer_;
};

TEST_F(DropConnectionTest, TheClientSeesTheEnd) {
  EXPECT_TRUE(DropConnection(peer_));
  EXPECT_TRUE(ClosedByPeer(client_));
}

// It stays open, and in the list of descriptors, until gRPC has noticed.
TEST_F(DropConnectionTest, OneIsDroppedOnce) {
  EXPECT_TRUE(DropConnection(peer_));
  EXPECT_FALSE(DropConnection(peer_));
}

TEST_F(DropConnectionTest, OneWhoseClientSendsNoMoreIsDropped) {
  shutdown(client_.get(), SHUT_WR);
  EXPECT_TRUE(ClosedByPeer(accepted_));
  EXPECT_TRUE(DropConnection(peer_));
  EXPECT_FALSE(DropConnection(peer_));
}

TEST_F(DropConnectionTest, OthersStay) {
  EXPECT_FALSE(DropConnection("ipv4:127.0.0.1:1"));
  EXPECT_FALSE(DropConnection("unix:"));
  EXPECT_TRUE(SendAll(accepted_, "x"));
}

}  // namespace
}  // namespace gemmd
