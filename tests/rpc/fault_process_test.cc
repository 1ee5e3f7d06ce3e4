// The program when it loses devices: what callers, probes and metrics are told, and its end.
#include <signal.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/flags/flags.h"
#include "tests/rpc/faulty_server.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(FaultProcess, EndsByItselfWhenTheLastDeviceHangs) {
  FaultyServer server("faulty:1", "host:0 launch hung 0");
  EXPECT_EQ(server.Multiply().code(), kUnavailable);
  const std::string output = server.process().ReadAll();
  EXPECT_EQ(server.process().ExitCode(), kExitUnusable);
  EXPECT_THAT(output, AllOf(HasSubstr("device lost"), HasSubstr("--job-timeout"),
                            HasSubstr("shutting down: no healthy device left"),
                            HasSubstr(R"("work_left":true)")));
}

TEST(FaultProcess, EndsByItselfWhenTheLastDeviceHasAStickyError) {
  FaultyServer server("faulty:1", "host:0 launch sticky 0");
  EXPECT_EQ(server.Multiply().code(), kUnavailable);
  const std::string output = server.process().ReadAll();
  EXPECT_EQ(server.process().ExitCode(), kExitUnusable);
  EXPECT_THAT(output, AllOf(HasSubstr("device lost"), HasSubstr("injected error")));
}

TEST(FaultProcess, GoesOnWithTheDeviceThatIsLeft) {
  FaultyServer server("faulty:2", "host:0 launch hung 0");
  EXPECT_THAT(server.Page("/metrics"), HasSubstr("gemmd_device_healthy{device=\"host:0\"} 1"));
  const std::string lost = server.Put("host:0"), there = server.Put("host:1");
  EXPECT_EQ(server.Multiply(lost).code(), kUnavailable);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(server.Multiply().result.has_value());
  EXPECT_EQ(server.CodeAfterLoss(lost), kDataLoss);
  EXPECT_TRUE(server.Multiply(there).result.has_value());
  EXPECT_THAT(server.Page("/readyz"), HasSubstr("200"));
  EXPECT_THAT(server.Page("/metrics"),
              AllOf(HasSubstr("gemmd_device_healthy{device=\"host:0\"} 0"),
                    HasSubstr("gemmd_device_healthy{device=\"host:1\"} 1"),
                    HasSubstr("gemmd_device_hangs_total{device=\"host:0\"} 1"),
                    HasSubstr("gemmd_matrices_lost_total{device=\"host:0\"} 1"),
                    HasSubstr("gemmd_matrices_lost_total{device=\"host:1\"} 0"),
                    HasSubstr("gemmd_jobs_in_flight 0")));
  server.process().Signal(SIGTERM);
  const std::string output = server.process().ReadAll();
  EXPECT_EQ(server.process().ExitCode(), kExitWorkLeft) << "the kernel still hangs";
  EXPECT_THAT(output, HasSubstr("draining"));
}

// A kernel that runs on cannot be interrupted. The process still ends, and says so.
TEST(FaultProcess, EndsInTimeUnderAKernelThatRunsOn) {
  FaultyServer server("faulty:1", "host:0 launch hung 0",
                      {"--job-timeout=1h", "--drain-timeout=100ms"});
  gemm::v1::Product product;
  *product.mutable_a() = GeneratedOperand({32, 32, gemm::DType::kF32}, 1);
  *product.mutable_b() = GeneratedOperand({32, 32, gemm::DType::kF32}, 2);
  StreamClient stream(server.stub(), absl::Seconds(120));
  stream.Header(1, product);
  while (server.Page("/metrics").find("gemmd_streams_in_use{device=\"host:0\"} 1") ==
         std::string::npos) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  server.process().Signal(SIGTERM);
  EXPECT_EQ(stream.Wait(1).code(), kUnavailable);
  const std::string output = server.process().ReadAll();
  EXPECT_EQ(server.process().ExitCode(), kExitWorkLeft);
  EXPECT_THAT(output, HasSubstr("stopped with work under way"));
  EXPECT_THAT(output, Not(HasSubstr("\"msg\":\"stopped\"")));
}

}  // namespace
}  // namespace gemmd
