// The bounds of a server's benchmark, on the host.
#include "server/benchmark/bounded_backend.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Launches take as long as the test says.
class TimedDevice : public gemm::bench::Backend {
 public:
  gemm::DeviceCaps caps() const override { return host_->caps(); }
  gemm::bench::Metadata metadata() const override { return host_->metadata(); }
  size_t cache_bytes() const override { return host_->cache_bytes(); }
  size_t free_bytes() const override { return host_->free_bytes(); }
  absl::StatusOr<gemm::bench::Buffer> Allocate(size_t bytes) override {
    return host_->Allocate(bytes);
  }
  absl::Status Fill(void* data, std::byte value, size_t bytes) override {
    return host_->Fill(data, value, bytes);
  }
  absl::Status Upload(void* device, const void* host, size_t bytes) override {
    return host_->Upload(device, host, bytes);
  }
  absl::Status Synchronize() override { return host_->Synchronize(); }
  absl::Status Read(const void* from, size_t pitch, size_t width, size_t height,
                    void* to) override {
    return host_->Read(from, pitch, width, height, to);
  }
  gemm::Launch MakeLaunch(const gemm::Problem& problem, const gemm::Operands& operands,
                          gemm::Workspace workspace, const gemm::LaunchParams& params) override {
    return host_->MakeLaunch(problem, operands, workspace, params);
  }
  absl::StatusOr<double> Time(const std::function<absl::Status(int)>& enqueue, int count,
                              double) override {
    const size_t call = counts.size();
    counts.push_back(count);
    for (int i = 0; i < count; ++i) {
      if (absl::Status status = enqueue(i); !status.ok()) return status;
    }
    if (call >= seconds.size()) return absl::InternalError("more calls than the test knows");
    return seconds[call];
  }
  std::vector<gemm::bench::LaunchFn> VendorAlgorithms(const gemm::Problem& problem,
                                                      const gemm::Operands& operands,
                                                      int count) override {
    return host_->VendorAlgorithms(problem, operands, count);
  }

  std::vector<int> counts;      // of each call of Time
  std::vector<double> seconds;  // a launch takes in each

 private:
  const std::unique_ptr<gemm::bench::Backend> host_ = gemm::bench::CreateHostBackend();
};

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

// Kernels of the host look at it between tiles.
TEST_F(BoundedBackendTest, LaunchesHaveTheFlagThatStopsThem) {
  const std::atomic<bool> stop{false};
  BoundedBackend backend(
      gemm::bench::CreateHostBackend(), 1000, [this] { return stopped_; }, &stop);
  EXPECT_EQ(backend.MakeLaunch({}, {}, {}, {}).stop, &stop);
  EXPECT_EQ(backend_.MakeLaunch({}, {}, {}, {}).stop, nullptr);
}

TEST_F(BoundedBackendTest, LongCallsGoInPartsAndCountOnce) {
  auto own = std::make_unique<TimedDevice>();
  TimedDevice& device = *own;
  BoundedBackend backend(std::move(own), 1000, [] { return absl::OkStatus(); });
  std::vector<int> launched;
  const auto enqueue = [&](int i) {
    launched.push_back(i);
    return absl::OkStatus();
  };
  device.seconds = {0.125, 0.25, 0.5};
  auto mean = backend.Time(enqueue, 5, 0.1);
  ASSERT_TRUE(mean.ok()) << mean.status();
  EXPECT_THAT(device.counts, ElementsAre(2, 2, 1)) << "a quarter of a second each";
  EXPECT_THAT(launched, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_DOUBLE_EQ(*mean, (2 * 0.125 + 2 * 0.25 + 0.5) / 5);

  device.counts.clear();
  device.seconds = {3, 5};
  mean = backend.Time(enqueue, 2, 4);
  ASSERT_TRUE(mean.ok()) << mean.status();
  EXPECT_THAT(device.counts, ElementsAre(1, 1)) << "one at least";
  EXPECT_DOUBLE_EQ(*mean, 4);

  device.counts.clear();
  device.seconds = {0.5};
  mean = backend.Time(enqueue, 100, 0.001);
  ASSERT_TRUE(mean.ok()) << mean.status();
  EXPECT_THAT(device.counts, ElementsAre(100));
  EXPECT_DOUBLE_EQ(*mean, 0.5);
}

TEST_F(BoundedBackendTest, NoPartIsBegunOnceItIsStopped) {
  auto own = std::make_unique<TimedDevice>();
  TimedDevice& device = *own;
  BoundedBackend backend(std::move(own), 1000, [this] { return stopped_; });
  device.seconds = {1, 1, 1};
  const auto enqueue = [&](int i) {
    if (i == 1) stopped_ = absl::CancelledError("enough");
    return absl::OkStatus();
  };
  EXPECT_EQ(backend.Time(enqueue, 3, 1).status(), absl::CancelledError("enough"));
  EXPECT_THAT(device.counts, ElementsAre(1, 1, 1)) << "the last without a launch";
}

}  // namespace
}  // namespace gemmd
