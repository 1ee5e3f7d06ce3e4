// The flow of a job on a server that asks nobody who calls: its connection's, even if connections
// have no addresses.
#include <future>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "tests/base/temporary_folder.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;

ServerOptions OnASocket(const std::string& path) {
  ServerOptions options = SmallServer();
  options.address = "unix:" + path;
  return options;
}

class FlowsTest : private TemporaryFolder, public RpcTest {
 protected:
  FlowsTest() : RpcTest(OnASocket(Path("gemmd.sock"))) {}

  std::unique_ptr<v1::GemmService::Stub> OwnConnection() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1::GemmService::NewStub(grpc::CreateCustomChannel(
        server_->address(), grpc::InsecureChannelCredentials(), arguments));
  }
  DeviceStats Device() const { return server_->engine().Stats().devices[0]; }
};

TEST_F(FlowsTest, EachConnectionOfAUnixSocketHasItsOwn) {
  constexpr int kOfTheFirst = 12;  // more than there are streams
  // Nothing ends, and no job leaves the queue, until it is told to go on.
  std::promise<void> go_on;
  server_->engine().devices()[0]->upload_stream().Notify(
      [held = go_on.get_future().share()](const absl::Status&) { held.wait(); });
  v1::Product product;
  *product.mutable_a() = GeneratedOperand({8, 8, gemm::DType::kF32}, 1);
  *product.mutable_b() = GeneratedOperand({8, 8, gemm::DType::kF32}, 2);
  const auto first_stub = OwnConnection(), second_stub = OwnConnection();
  StreamClient first(*first_stub), second(*second_stub);
  for (int i = 1; i <= kOfTheFirst; ++i) first.Header(i, product);
  const auto await_jobs = [&](int64_t jobs) {
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (HeldNow().jobs != jobs && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_EQ(HeldNow().jobs, jobs);
  };
  await_jobs(kOfTheFirst);
  EXPECT_EQ(Device().waiting_flows, 1);
  second.Header(1, product);
  await_jobs(kOfTheFirst + 1);
  const int64_t flows = Device().waiting_flows;
  go_on.set_value();
  EXPECT_EQ(flows, 2);
  for (int i = 1; i <= kOfTheFirst; ++i) EXPECT_TRUE(first.Wait(i).result.has_value()) << i;
  EXPECT_TRUE(second.Wait(1).result.has_value());
}

}  // namespace
}  // namespace gemmd
