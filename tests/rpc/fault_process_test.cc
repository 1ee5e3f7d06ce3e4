// The program when it loses devices: what callers, probes and metrics are told, and its end.
#include <signal.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/flags.h"
#include "tests/net/loopback.h"
#include "tests/rpc/gemmd_process.h"
#include "tests/rpc/host_matrix.h"
#include "tests/rpc/stream_client.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The program with these devices and faults.
class FaultyServer {
 public:
  FaultyServer(const std::string& devices, const std::string& faults) {
    std::vector<std::string> arguments = HostServerFlags();
    arguments[0] = "--devices=" + devices;
    // Above what a product takes on a busy machine, which would lose a device that works.
    arguments.insert(arguments.end(), {"--job-timeout=5s", "--warm-up=off"});
    setenv("GEMMD_FAULTS", faults.c_str(), 1);
    process_ = std::make_unique<GemmdProcess>(arguments, nullptr, FAULTY_GEMMD_BINARY);
    unsetenv("GEMMD_FAULTS");
    at_ = process_->AwaitServing();
    stub_ = v1::GemmService::NewStub(
        grpc::CreateChannel(at_.address, grpc::InsecureChannelCredentials()));
  }

  // How one product of its own call ends.
  JobOutcome Multiply() {
    v1::Product product;
    *product.mutable_a() = GeneratedOperand({32, 32, gemm::DType::kF32}, 1);
    *product.mutable_b() = GeneratedOperand({32, 32, gemm::DType::kF32}, 2);
    StreamClient stream(*stub_, absl::Seconds(120));
    stream.Header(1, product);
    return stream.Wait(1);
  }
  std::string Page(const std::string& path) { return HttpGet(at_.metrics, path); }
  GemmdProcess& process() { return *process_; }

 private:
  std::unique_ptr<GemmdProcess> process_;
  ServingAt at_;
  std::unique_ptr<v1::GemmService::Stub> stub_;
};

constexpr int kUnavailable = static_cast<int>(grpc::StatusCode::UNAVAILABLE);

TEST(FaultProcess, EndsByItselfWhenTheLastDeviceHangs) {
  FaultyServer server("faulty:1", "host:0 launch hung 0");
  EXPECT_EQ(server.Multiply().code(), kUnavailable);
  const std::string output = server.process().ReadAll();
  EXPECT_EQ(server.process().ExitCode(), kExitUnusable);
  EXPECT_THAT(output, AllOf(HasSubstr("device lost"), HasSubstr("--job-timeout"),
                            HasSubstr("of no more use"), HasSubstr(R"("work_left":true)")));
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
  EXPECT_EQ(server.Multiply().code(), kUnavailable);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(server.Multiply().result.has_value());
  EXPECT_THAT(server.Page("/readyz"), HasSubstr("200"));
  EXPECT_THAT(server.Page("/metrics"),
              AllOf(HasSubstr("gemmd_device_healthy{device=\"host:0\"} 0"),
                    HasSubstr("gemmd_device_healthy{device=\"host:1\"} 1"),
                    HasSubstr("gemmd_device_hangs_total{device=\"host:0\"} 1"),
                    HasSubstr("gemmd_jobs_in_flight 0")));
  server.process().Signal(SIGTERM);
  const std::string output = server.process().ReadAll();
  EXPECT_EQ(server.process().ExitCode(), kExitWorkLeft) << "the kernel still hangs";
  EXPECT_THAT(output, HasSubstr("draining"));
}

}  // namespace
}  // namespace gemmd
