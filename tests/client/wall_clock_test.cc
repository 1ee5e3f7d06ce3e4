// The wall clock is set while calls are made: none ends at a deadline that has not come.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "gemmd/client/client.h"
#include "gtest/gtest.h"
#include "server/server.h"

namespace {

// Added to the wall clock that this process reads.
std::atomic<int64_t> offset_seconds{0};

}  // namespace

// In the place of the C library's, for every library of this process.
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, now));
  if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += offset_seconds.load();
  return result;
}

namespace gemmd {
namespace {

class WallClockTest : public testing::TestWithParam<int> {
 protected:
  WallClockTest() {
    ServerOptions options;
    options.engine.devices = "host";
    options.engine.device_memory_bytes = 256 * kMiB;
    options.address = "127.0.0.1:0";
    options.metrics_address = "";
    server_ = *Server::Start(options);
    client_ = *client::Client::Connect({.address = server_->address()});
  }

  absl::Status Multiply() {
    const client::Generated noise = {.shape = {.rows = 32, .cols = 32, .dtype = client::kF32}};
    return client_->Multiply({.a = noise, .b = noise}, {.timeout = absl::Seconds(5)}).status();
  }

  std::unique_ptr<Server> server_;
  std::unique_ptr<client::Client> client_;
};

// absl::Now() counts cycles from a sample once it has taken two, 2 s after one another.
void LetAbslCountCycles() {
  for (int i = 0; i < 500; ++i) {
    (void)absl::Now();
    usleep(10'000);
  }
}

TEST_P(WallClockTest, EndsNoCall) {
  ASSERT_TRUE(Multiply().ok());
  LetAbslCountCycles();
  offset_seconds += GetParam();
  for (int i = 0; i < 20; ++i) {
    const absl::Status status = Multiply();
    EXPECT_TRUE(status.ok()) << "call " << i << ": " << status;
  }
}

INSTANTIATE_TEST_SUITE_P(ByHalfAMinute, WallClockTest, testing::Values(-30, 30));

}  // namespace
}  // namespace gemmd
