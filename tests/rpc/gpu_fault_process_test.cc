// The program when it loses GPUs: to a kernel that writes where no memory is, and to one that
// does not end.
#include <signal.h>

#include <atomic>
#include <iostream>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/device/device_kinds.h"
#include "server/flags/flags.h"
#include "tests/rpc/faulty_server.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class GpuFaultProcess : public ::testing::Test {
 protected:
  static void NeedGpus(int count) {
    if (DeviceCount("cuda") < count) GTEST_SKIP() << "skipped: fewer CUDA devices than " << count;
  }
};

TEST_F(GpuFaultProcess, AnIllegalAccessEndsTheProcessOfTheLastGpu) {
  NeedGpus(1);
  if (IsSkipped()) return;
  FaultyServer server("faulty-cuda:0", "cuda:0 launch illegal 2");
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(server.Multiply().result.has_value());
  EXPECT_EQ(server.Multiply().code(), kUnavailable);
  const std::string output = server.process().ReadAll();
  EXPECT_EQ(server.process().ExitCode(), kExitUnusable);
  EXPECT_THAT(output, AllOf(HasSubstr("device lost"), HasSubstr("cudaErrorIllegalAddress"),
                            HasSubstr(R"("work_left":false)")));
}

TEST_F(GpuFaultProcess, AKernelThatDoesNotEndEndsTheProcessOfTheLastGpu) {
  NeedGpus(1);
  if (IsSkipped()) return;
  FaultyServer server("faulty-cuda:0", "cuda:0 launch endless 2");
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(server.Multiply().result.has_value());
  EXPECT_EQ(server.Multiply().code(), kUnavailable);
  const std::string output = server.process().ReadAll();
  EXPECT_EQ(server.process().ExitCode(), kExitUnusable);
  EXPECT_THAT(output, AllOf(HasSubstr("device lost"), HasSubstr("--job-timeout"),
                            HasSubstr(R"("work_left":true)")));
}

// CUDA's own rule: after an illegal access every call of the process fails with that error, on all
// of its GPUs.
TEST_F(GpuFaultProcess, AnIllegalAccessTakesAllGpusOfTheProcess) {
  NeedGpus(2);
  if (IsSkipped()) return;
  FaultyServer server("faulty-cuda:0,1", "cuda:0 launch illegal 0");
  const std::string on_0 = server.Put("cuda:0");
  EXPECT_EQ(server.Multiply(on_0).code(), kUnavailable);
  EXPECT_EQ(server.Multiply().code(), kUnavailable) << "the first call on the other one finds it";
  const std::string output = server.process().ReadAll();
  EXPECT_EQ(server.process().ExitCode(), kExitUnusable) << output;
  EXPECT_THAT(output, AllOf(HasSubstr("device cuda:0 is lost: cudaErrorIllegalAddress"),
                            HasSubstr("device cuda:1 is lost: cudaErrorIllegalAddress"),
                            HasSubstr(R"("work_left":false)")));
}

// So what keeps the other GPU is a process of its own.
TEST_F(GpuFaultProcess, AServerForEachGpuKeepsTheOtherOneThroughAnIllegalAccess) {
  NeedGpus(2);
  if (IsSkipped()) return;
  FaultyServer lost("faulty-cuda:0", "cuda:0 launch illegal 1");
  FaultyServer other("faulty-cuda:1", "cuda:1 launch illegal 1000000");
  const std::string there = other.Put("cuda:1");
  std::atomic<bool> gone = false;
  std::atomic<int> before = 0, after = 0, failed = 0;
  std::thread caller([&] {
    while (after < 200 && failed == 0) {
      std::atomic<int>& products = gone ? after : before;
      ++(other.Multiply(there).result.has_value() ? products : failed);
    }
  });
  EXPECT_TRUE(lost.Multiply().result.has_value());
  EXPECT_EQ(lost.Multiply().code(), kUnavailable);
  const std::string output = lost.process().ReadAll();
  EXPECT_EQ(lost.process().ExitCode(), kExitUnusable) << output;
  EXPECT_THAT(output, HasSubstr("device cuda:0 is lost: cudaErrorIllegalAddress"));
  gone = true;
  caller.join();
  EXPECT_EQ(failed, 0);
  EXPECT_GT(before, 0);
  std::cout << before << " products beside the faulty server, " << after << " after its end\n";
  EXPECT_THAT(other.Page("/readyz"), HasSubstr("200"));
  EXPECT_THAT(other.Page("/metrics"),
              AllOf(HasSubstr("gemmd_device_healthy{device=\"cuda:1\"} 1"),
                    HasSubstr("gemmd_matrices_lost_total{device=\"cuda:1\"} 0")));
  other.process().Signal(SIGTERM);
  other.process().ReadAll();
  EXPECT_EQ(other.process().ExitCode(), 0);
}

TEST_F(GpuFaultProcess, BesideAKernelThatDoesNotEndTheOtherGpuGoesOn) {
  NeedGpus(2);
  if (IsSkipped()) return;
  FaultyServer server("faulty-cuda:0,1", "cuda:0 launch endless 0");
  const std::string lost = server.Put("cuda:0"), there = server.Put("cuda:1");
  EXPECT_EQ(server.Multiply(lost).code(), kUnavailable);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(server.Multiply().result.has_value());
  EXPECT_EQ(server.CodeAfterLoss(lost), kDataLoss);
  EXPECT_TRUE(server.Multiply(there).result.has_value());
  EXPECT_THAT(server.Page("/readyz"), HasSubstr("200"));
  EXPECT_THAT(server.Page("/metrics"),
              AllOf(HasSubstr("gemmd_device_healthy{device=\"cuda:0\"} 0"),
                    HasSubstr("gemmd_device_healthy{device=\"cuda:1\"} 1"),
                    HasSubstr("gemmd_matrices_lost_total{device=\"cuda:0\"} 1"),
                    HasSubstr("gemmd_matrices_lost_total{device=\"cuda:1\"} 0"),
                    HasSubstr("gemmd_jobs_in_flight 0")));
  server.process().Signal(SIGTERM);
  const std::string output = server.process().ReadAll();
  EXPECT_EQ(server.process().ExitCode(), kExitWorkLeft) << output;
}

}  // namespace
}  // namespace gemmd
