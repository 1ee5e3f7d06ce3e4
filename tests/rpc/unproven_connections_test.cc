// Strangers hold all connections. Clients who show who they are still get in.
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/net/loopback.h"
#include "tests/rpc/callers_fixture.h"
#include "tests/rpc/raw_client.h"
#include "tests/rpc/server_metric.h"

namespace gemmd {
namespace {

ServerOptions WithFourConnections() {
  ServerOptions options = WithCallers();
  options.metrics_address = "127.0.0.1:0";
  options.max_connections = 4;
  options.connections.proof = absl::Milliseconds(300);
  options.identity.services.health = {.who = MethodRule::Who::kAnyone};
  return options;
}

class UnprovenConnectionsRpcTest : public RpcTest {
 protected:
  UnprovenConnectionsRpcTest() : RpcTest(WithFourConnections()) {}

  std::shared_ptr<grpc::Channel> NewChannel() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 50);
    return grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(),
                                     arguments);
  }
  static grpc::StatusCode Info(const std::shared_ptr<grpc::Channel>& channel,
                               const std::string& token) {
    RawCall call(channel, "/gemm.v1.GemmService/GetServerInfo", token);
    call.Write("");
    call.WritesDone();
    return call.Finish().error_code();
  }
};

TEST_F(UnprovenConnectionsRpcTest, TheOldestMakeRoomForACaller) {
  const auto alice = NewChannel();
  ASSERT_EQ(Info(alice, "alice-token"), grpc::StatusCode::OK);
  // Neither a call that is refused proves anything, nor one that anyone may make.
  const auto stranger = NewChannel();
  EXPECT_EQ(Info(stranger, ""), grpc::StatusCode::UNAUTHENTICATED);
  std::string answer;
  ASSERT_TRUE(CallUnary(stranger, "/grpc.health.v1.Health/Check", HealthRequest(""), answer).ok());
  const UniqueFd silent[] = {ConnectTo(server_->address()), ConnectTo(server_->address())};

  // All three may be closed when he comes: else one makes room enough.
  absl::SleepFor(absl::Milliseconds(1500));
  const auto bob = NewChannel();
  EXPECT_TRUE(Eventually([&] { return Info(bob, "bob-token") == grpc::StatusCode::OK; }));
  EXPECT_TRUE(ClosedByPeer(silent[0]));
  EXPECT_TRUE(Eventually([&] { return stranger->GetState(false) != GRPC_CHANNEL_READY; }));
  EXPECT_EQ(alice->GetState(false), GRPC_CHANNEL_READY);
  const double made_room =
      Metric({.address = server_->address(), .metrics = server_->metrics_address()},
             "gemmd_unproven_connections_closed_total{listener=\"grpc\"}");
  EXPECT_EQ(made_room, 3);
}

}  // namespace
}  // namespace gemmd
