// What the program tells systemd.
#include "server/process/service_manager.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/temporary_folder.h"
#include "tests/rpc/gemmd_process.h"

namespace gemmd {
namespace {

// The socket of a service manager, in the environment of what a test starts.
class ServiceManagerTest : public ::testing::Test {
 protected:
  ServiceManagerTest() : descriptor_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const std::string path = folder_.Path("notify");
    sockaddr_un address = {.sun_family = AF_UNIX};
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    setenv("NOTIFY_SOCKET", path.c_str(), /*overwrite=*/1);
  }
  ~ServiceManagerTest() override {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
    close(descriptor_);
  }

  // The next message; empty where none comes within the time.
  std::string Next(int milliseconds) const {
    pollfd readable = {.fd = descriptor_, .events = POLLIN};
    if (poll(&readable, 1, milliseconds) != 1) return "";
    char text[256];
    const ssize_t size = recv(descriptor_, text, sizeof(text), 0);
    return size < 0 ? "" : std::string(text, static_cast<size_t>(size));
  }

 private:
  TemporaryFolder folder_;
  const int descriptor_;
};

constexpr int kLong = 60'000;  // for a server that starts on a busy machine

TEST_F(ServiceManagerTest, HearsOfTheStartOfLifeAndOfTheEnd) {
  setenv("WATCHDOG_USEC", "1000", /*overwrite=*/1);
  GemmdProcess gemmd(HostServerFlags());
  EXPECT_EQ(Next(kLong), "READY=1");
  EXPECT_FALSE(gemmd.AwaitServing().address.empty());
  EXPECT_EQ(Next(kLong), "WATCHDOG=1");
  EXPECT_EQ(Next(kLong), "WATCHDOG=1");
  gemmd.Signal(SIGTERM);
  std::string last = Next(kLong);
  while (last == "WATCHDOG=1") last = Next(kLong);
  EXPECT_EQ(last, "STOPPING=1");
  EXPECT_EQ(gemmd.ExitCode(), 0);
}

TEST_F(ServiceManagerTest, IsNotToldOfLifeWhereItDoesNotAsk) {
  ServiceManager manager;
  manager.Alive();
  setenv("WATCHDOG_USEC", "1000", /*overwrite=*/1);
  setenv("WATCHDOG_PID", "1", /*overwrite=*/1);
  ServiceManager of_another_process;
  of_another_process.Alive();
  manager.Ready();
  EXPECT_EQ(Next(kLong), "READY=1");
}

}  // namespace
}  // namespace gemmd
