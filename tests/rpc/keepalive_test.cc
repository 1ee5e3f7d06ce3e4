// A client that is gone without a word: its connection stays open, and nothing comes through.
#include <memory>
#include <string>

#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "tests/net/relay.h"
#include "tests/rpc/server_metric.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;

constexpr char kConnections[] = "gemmd_connections{listener=\"grpc\"}";

// Pings alone may find out: every other wait is far longer than the test.
ServerOptions WithKeepalive() {
  ServerOptions options = SmallServer();
  options.metrics_address = "127.0.0.1:0";
  options.connections.keepalive = absl::Milliseconds(500);
  options.connections.idle = absl::ZeroDuration();
  options.rpc.send_timeout = absl::Seconds(1);  // as long as an answer to a ping may take
  options.rpc.payload_timeout = absl::Hours(1);
  return options;
}

class KeepaliveTest : public RpcTest {
 protected:
  KeepaliveTest() : RpcTest(WithKeepalive()) {}

  double MetricNow(const std::string& series) const {
    return Metric({.address = server_->address(), .metrics = server_->metrics_address()}, series);
  }

  // A job whose second operand is yet to come.
  void BeginJob(StreamClient& stream) const {
    v1::Product product;
    *product.mutable_a() = PayloadOperand(matrix_);
    *product.mutable_b() = PayloadOperand(matrix_);
    stream.Header(1, product);
    stream.Payload(1, v1::OPERAND_ROLE_A, matrix_);
  }

  const HostMatrix matrix_ = RandomMatrix({200, 200, gemm::DType::kF32}, 1);
};

TEST_F(KeepaliveTest, AClientThatIsGoneWithoutAWordLeavesNothingAndHurtsNobody) {
  Relay relay(server_->address());
  const auto through_relay = v1::GemmService::NewStub(
      grpc::CreateChannel(relay.address(), grpc::InsecureChannelCredentials()));
  StreamClient stays(*stub_);
  BeginJob(stays);
  // Nothing of the operand is on its way through the staging memory.
  Held of_one;
  ASSERT_TRUE(Eventually([&] {
    of_one = HeldNow();
    return of_one.jobs == 1 && of_one.memory_bytes > 0 && of_one.staging_bytes == 0;
  }));

  StreamClient gone(*through_relay);
  BeginJob(gone);
  grpc::ClientContext context;
  v1::PutMatrixResponse response;
  const auto upload = through_relay->PutMatrix(&context, &response);
  v1::PutMatrixRequest request;
  *request.mutable_header()->mutable_shape() = ProtoShape(matrix_.shape);
  upload->Write(request);
  ASSERT_TRUE(Eventually([&] { return HeldNow().jobs == 2; }));
  AwaitMatrices(of_one.matrices + 1);
  ASSERT_TRUE(Eventually([&] { return MetricNow(kConnections) == 2; }));

  relay.Freeze();
  EXPECT_TRUE(Eventually([&] { return MetricNow(kConnections) == 1; }));
  ExpectHolds(of_one);
  EXPECT_EQ(MetricNow("gemmd_job_duration_seconds_count{outcome=\"CANCELLED\"}"), 1);
  // As silent, but there: it has answered the pings.
  stays.Payload(1, v1::OPERAND_ROLE_B, matrix_);
  EXPECT_TRUE(stays.Wait(1).result.has_value());
  stays.HalfClose();
  EXPECT_TRUE(stays.Finish().ok());
}

}  // namespace
}  // namespace gemmd
