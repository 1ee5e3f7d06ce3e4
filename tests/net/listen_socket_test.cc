#include "server/net/listen_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/net/loopback.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

std::string PathOf(const std::string& name) { return testing::TempDir() + "/" + name; }

bool IsSocket(const std::string& path) {
  struct stat file {};
  return lstat(path.c_str(), &file) == 0 && S_ISSOCK(file.st_mode);
}

TEST(ListenTest, LocalhostIsHeardOnAllItsAddressesAndOnePort) {
  const auto listening = Listen("--address", {.host = "localhost"});
  ASSERT_TRUE(listening.ok()) << listening.status();
  EXPECT_GT(listening->address.port, 0);
  EXPECT_TRUE(ConnectTo(listening->address.port));
  const auto again = Listen("--address", listening->address);
  EXPECT_EQ(again.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(again.status().message()), HasSubstr("Address already in use"));
}

TEST(ListenTest, AUnixSocketsFileGoesWithIt) {
  const Address address{.path = PathOf("gone.sock")};
  {
    const auto listening = Listen("--address", address);
    ASSERT_TRUE(listening.ok()) << listening.status();
    EXPECT_EQ(listening->text(), "unix:" + address.path);
    EXPECT_TRUE(IsSocket(address.path));
  }
  EXPECT_FALSE(IsSocket(address.path));
}

TEST(ListenTest, AUnixSocketThatIsServedIsNotTakenAway) {
  const Address address{.path = PathOf("served.sock")};
  const auto first = Listen("--address", address);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = Listen("--address", address);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another process serves there"));
  EXPECT_TRUE(IsSocket(address.path));
}

TEST(ListenTest, AUnixSocketThatACrashLeftIsReplaced) {
  const Address address{.path = PathOf("stale.sock")};
  {
    const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un at{.sun_family = AF_UNIX};
    std::strcpy(at.sun_path, address.path.c_str());
    ASSERT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)), 0);
  }
  ASSERT_TRUE(IsSocket(address.path));
  EXPECT_TRUE(Listen("--address", address).ok());
}

TEST(ListenTest, AFileThatIsNoSocketIsLeftAlone) {
  const Address address{.path = PathOf("precious.txt")};
  std::ofstream(address.path) << "data";
  const auto listening = Listen("--address", address);
  EXPECT_EQ(listening.status().code(), absl::StatusCode::kUnavailable);
  std::string content;
  std::ifstream(address.path) >> content;
  EXPECT_EQ(content, "data");
  unlink(address.path.c_str());
}

}  // namespace
}  // namespace gemmd
