// The bounds of a server's benchmark, on the host.
#include "server/benchmark/bounded_backend.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class BoundedBackendTest : public testing::Test {
 protected:
  absl::Status stopped_;
  BoundedBackend backend_{gemm::bench::CreateHostBackend(), 1000, [this] { return stopped_; }};
};

TEST_F(BoundedBackendTest, MemoryIsCountedAndComesBack) {
  EXPECT_EQ(backend_.free_bytes(), 1000u);
  auto first = backend_.Allocate(600);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(backend_.free_bytes(), 400u);
  const absl::Status refused = backend_.Allocate(401).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("no 401 bytes"), HasSubstr("1000"), HasSubstr("--benchmark-memory")));
  const auto second = backend_.Allocate(400);
  EXPECT_TRUE(second.ok()) << second.status();
  first->reset();
  EXPECT_EQ(backend_.free_bytes(), 600u);
}

TEST_F(BoundedBackendTest, LaunchesEndOnceItIsStopped) {
  std::vector<int> launched;
  const auto enqueue = [&](int i) {
    launched.push_back(i);
    if (i == 2) stopped_ = absl::CancelledError("enough");
    return absl::OkStatus();
  };
  EXPECT_EQ(backend_.Time(enqueue, 100, 0).status(), absl::CancelledError("enough"));
  EXPECT_EQ(launched.size(), 3u);
  EXPECT_EQ(backend_.Upload(nullptr, nullptr, 0), absl::CancelledError("enough"));
}

TEST_F(BoundedBackendTest, LongCallsGoInPartsAndCountOnce) {
  std::vector<int> launched;
  const auto enqueue = [&](int i) {
    launched.push_back(i);
    return absl::OkStatus();
  };
  // Parts of two launches.
  const auto seconds = backend_.Time(enqueue, 5, 0.1);
  ASSERT_TRUE(seconds.ok()) << seconds.status();
  EXPECT_GE(*seconds, 0);
  EXPECT_THAT(launched, testing::ElementsAre(0, 1, 2, 3, 4));
}

}  // namespace
}  // namespace gemmd
