// Rules for every RPC of the contract, new ones included.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "inference/inference.pb.h"
#include "server/base/clock.h"
#include "server/rpc/context/method.h"
#include "tests/net/loopback.h"
#include "tests/rpc/raw_client.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using ::testing::HasSubstr;
using ::testing::Not;

ServerOptions WithMetrics() {
  ServerOptions options = SmallServer();
  options.metrics_address = "127.0.0.1:0";
  return options;
}

class EveryRpcTest : public RpcTest {
 protected:
  EveryRpcTest() : RpcTest(WithMetrics()) {}

  std::string Metrics() const { return HttpGet(server_->metrics_address(), "/metrics"); }
};

TEST_F(EveryRpcTest, IsServedAndCountedUnderItsName) {
  ASSERT_GE(MethodNames().size(), 9);
  ASSERT_GE(InferenceMethodNames().size(), 16);
  std::vector<std::string> paths;
  for (const std::string& name : MethodNames()) paths.push_back("/gemm.v1.GemmService/" + name);
  for (const std::string& name : InferenceMethodNames()) {
    paths.push_back("/inference.GRPCInferenceService/" + name);
  }
  for (const std::string& path : paths) {
    const std::string method = path.substr(path.rfind('/') + 1);
    RawCall call(channel_, path);
    call.Write("");
    call.WritesDone();
    const grpc::Status status = call.Finish();
    // A method that is not served by design has a message of its own.
    EXPECT_TRUE(status.error_code() != grpc::StatusCode::UNIMPLEMENTED ||
                absl::StrContains(status.error_message(), "this server takes and gives"))
        << method << ": " << status.error_message();
    // A call is counted when gRPC is done with it, just after its answer.
    const std::string series = absl::StrCat("gemmd_requests_total{method=\"", method, "\"");
    const absl::Time deadline = SteadyNow() + absl::Seconds(20);
    while (!absl::StrContains(Metrics(), series) && SteadyNow() < deadline) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    EXPECT_THAT(Metrics(), HasSubstr(series));
  }
  EXPECT_THAT(Metrics(), Not(HasSubstr("method=\"other\"")));
}

TEST(MethodOf, IsTheNameInTheContract) {
  EXPECT_EQ(MethodOf<v1::MultiplyRequest>(), "Multiply");
  EXPECT_EQ(MethodOf<v1::GetServerInfoRequest>(), "GetServerInfo");
  EXPECT_EQ(MethodOf<inference::ModelInferRequest>(), "ModelInfer");
}

TEST(MethodOfDeathTest, EndsTheProcessForAMessageThatNoMethodTakes) {
  EXPECT_DEATH(MethodOf<v1::MultiplyResponse>(), "no method takes gemm.v1.MultiplyResponse");
}

}  // namespace
}  // namespace gemmd
