// The answers to probes while devices are lost one after the other.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/faulty_device.h"
#include "tests/net/loopback.h"
#include "tests/rpc/raw_client.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kReady[] = "HTTP/1.1 200";
constexpr char kNotReady[] = "HTTP/1.1 503";

ServerOptions TwoFaultyDevices() {
  static const bool added = [] {
    AddFaultyDeviceKinds();
    return true;
  }();
  EXPECT_TRUE(added);
  ServerOptions options = SmallServer();
  options.metrics_address = "127.0.0.1:0";
  options.engine.devices = "faulty:2";
  return options;
}

class LostDevicesTest : public RpcTest {
 protected:
  LostDevicesTest() : RpcTest(TwoFaultyDevices()) {}

  // As an error does that another thread finds; then the program's next look at the health.
  absl::Status Break(size_t device) {
    static_cast<FaultyDevice&>(*server_->engine().devices()[device]).Break();
    return server_->CheckHealth();
  }

  std::string Readyz() const { return HttpGet(server_->metrics_address(), "/readyz"); }

  // Health of the whole server, or of a service of it.
  Serving HealthOf(const std::string& service) {
    std::string response;
    const grpc::Status status =
        CallUnary(channel_, "/grpc.health.v1.Health/Check", HealthRequest(service), response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return ParseHealth(response);
  }

  grpc::Status MultiplyOnce() {
    v1::MultiplyUnaryRequest request;
    *request.mutable_product()->mutable_a() = GeneratedOperand({32, 32, gemm::DType::kF32}, 1);
    *request.mutable_product()->mutable_b() = GeneratedOperand({32, 32, gemm::DType::kF32}, 2);
    grpc::ClientContext context;
    v1::MultiplyUnaryResponse response;
    return stub_->MultiplyUnary(&context, request, &response);
  }
};

TEST_F(LostDevicesTest, ProbesTurnWithTheLastDevice) {
  // A health watcher hears of the turn without asking.
  RawCall watch(channel_, "/grpc.health.v1.Health/Watch");
  watch.Write(HealthRequest(""));
  watch.WritesDone();
  std::string heard;
  ASSERT_TRUE(watch.Read(heard));
  EXPECT_EQ(ParseHealth(heard), Serving::kServing);

  EXPECT_TRUE(Break(0).ok()) << "the other one serves";
  EXPECT_THAT(Readyz(), StartsWith(kReady));
  for (const char* service : {"", "gemm.v1.GemmService"}) {
    EXPECT_EQ(HealthOf(service), Serving::kServing) << service;
  }
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(MultiplyOnce().ok());

  const absl::Status lost = Break(1);
  EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable) << lost;
  EXPECT_THAT(Readyz(), AllOf(StartsWith(kNotReady), HasSubstr("device"),
                              HasSubstr(std::string(lost.message()))));
  for (const char* service : {"", "gemm.v1.GemmService"}) {
    EXPECT_EQ(HealthOf(service), Serving::kNotServing) << service;
  }
  ASSERT_TRUE(watch.Read(heard));
  EXPECT_EQ(ParseHealth(heard), Serving::kNotServing);
  EXPECT_EQ(MultiplyOnce().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(HttpGet(server_->metrics_address(), "/livez"), StartsWith(kReady))
      << "alive until it has ended by itself";
}

}  // namespace
}  // namespace gemmd
