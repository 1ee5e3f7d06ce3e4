// How long connections live, how many are in their handshake, and how long headers may be.
#include <signal.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/flags/flags.h"
#include "server/identity/callers.h"
#include "tests/identity/certificates.h"
#include "tests/net/loopback.h"
#include "tests/rpc/gemmd_process.h"
#include "tests/rpc/host_matrix.h"
#include "tests/rpc/raw_client.h"
#include "tests/rpc/server_metric.h"
#include "tests/rpc/stream_client.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using grpc::StatusCode;
using ::testing::HasSubstr;

constexpr char kOpen[] = "gemmd_connections{listener=\"grpc\"}";
constexpr char kAccepted[] = "gemmd_connections_accepted_total{listener=\"grpc\"}";

std::string InState(const char* state) {
  return absl::StrCat("gemmd_connections_by_state{listener=\"grpc\",state=\"", state, "\"}");
}

std::vector<std::string> With(std::vector<std::string> more) {
  std::vector<std::string> flags = HostServerFlags();
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

std::shared_ptr<grpc::Channel> OwnChannel(const std::string& address,
                                          const std::shared_ptr<grpc::ChannelCredentials>&
                                              credentials = grpc::InsecureChannelCredentials()) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

grpc::Status Info(v1::GemmService::Stub& stub, grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  v1::GetServerInfoResponse response;
  return stub.GetServerInfo(&context, {}, &response);
}

grpc::Status Info(v1::GemmService::Stub& stub) {
  grpc::ClientContext context;
  return Info(stub, context);
}

v1::Product PayloadProduct(const HostMatrix& matrix) {
  v1::Product product;
  *product.mutable_a() = PayloadOperand(matrix);
  *product.mutable_b() = PayloadOperand(matrix);
  return product;
}

TEST(ConnectionLife, AnIdleConnectionIsClosedAndOneWithACallIsNot) {
  GemmdProcess process(With({"--max-connection-idle=1s"}));
  const ServingAt server = process.AwaitServing();
  const auto with_call = v1::GemmService::NewStub(OwnChannel(server.address));
  StreamClient stream(*with_call);
  stream.Cancel(99);
  EXPECT_EQ(stream.Wait(99).code(), StatusCode::NOT_FOUND);
  const auto idle = v1::GemmService::NewStub(OwnChannel(server.address));
  EXPECT_TRUE(Info(*idle).ok());
  EXPECT_GE(Metric(server, kAccepted), 2);
  EXPECT_TRUE(Eventually([&] { return Metric(server, kOpen) == 1; }));
  stream.Cancel(100);
  EXPECT_EQ(stream.Wait(100).code(), StatusCode::NOT_FOUND);
  const grpc::Status again = Info(*idle);
  EXPECT_TRUE(again.ok()) << again.error_message();
  stream.HalfClose();
  EXPECT_TRUE(stream.Finish().ok());
}

// No call fails, none of the jobs that were there is lost, and the stream ends after them.
TEST(ConnectionLife, AnAgedConnectionGetsNoNewCallsAndAnAgedStreamNoNewJobs) {
  GemmdProcess process(With({"--max-connection-age=1s", "--max-connection-age-grace=1h"}));
  const ServingAt server = process.AwaitServing();
  const auto channel = OwnChannel(server.address);
  const auto stub = v1::GemmService::NewStub(channel);
  const HostMatrix matrix = RandomMatrix({8, 8, gemm::DType::kF32}, 1);
  StreamClient stream(*stub);
  // This call lasts as long as the grace. gRPC closes an aged connection after its last call. A
  // client that writes to it then, even to answer a ping, does not read that call's status.
  RawCall watch(channel, "/grpc.health.v1.Health/Watch");
  std::string health;
  watch.Write(HealthRequest(""));
  ASSERT_TRUE(watch.Read(health));
  stream.Header(1, PayloadProduct(matrix));
  stream.Cancel(99);
  EXPECT_EQ(stream.Wait(99).code(), StatusCode::NOT_FOUND);
  uint64_t next = 2;
  EXPECT_TRUE(Eventually([&] {
    const grpc::Status status = Info(*stub);
    EXPECT_TRUE(status.ok()) << status.error_message();
    stream.Header(next, PayloadProduct(matrix));
    stream.Cancel(next);
    return stream.Wait(next++).code() == StatusCode::UNAVAILABLE;
  }));
  // With the next call after that: the stream may be told first.
  EXPECT_TRUE(Eventually([&] {
    const grpc::Status status = Info(*stub);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return Metric(server, kAccepted) >= 2;
  }));
  EXPECT_TRUE(Eventually([&] { return Metric(server, InState("leaving")) >= 1; }));
  stream.Payload(1, v1::OPERAND_ROLE_A, matrix);
  stream.Payload(1, v1::OPERAND_ROLE_B, matrix);
  EXPECT_TRUE(stream.Wait(1).result.has_value());
  const grpc::Status end = stream.Finish();
  EXPECT_EQ(end.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_THAT(end.error_message(), HasSubstr("--max-connection-age"));
}

TEST(ConnectionLife, ACallThatOutlastsTheGraceIsCut) {
  GemmdProcess process(With({"--max-connection-age=2s", "--max-connection-age-grace=100ms"}));
  RawCall watch(OwnChannel(process.AwaitServing().address), "/grpc.health.v1.Health/Watch");
  std::string health;
  watch.Write(HealthRequest(""));
  watch.WritesDone();
  ASSERT_TRUE(watch.Read(health));
  EXPECT_EQ(watch.Finish().error_code(), StatusCode::UNAVAILABLE);
}

TEST(ConnectionLife, LongerHeadersThanTheBoundAreRefused) {
  const auto call_with = [](const char* flag, size_t bytes) {
    GemmdProcess process(With({flag}));
    const auto stub = v1::GemmService::NewStub(OwnChannel(process.AwaitServing().address));
    grpc::ClientContext context;
    context.AddMetadata("long", std::string(bytes, 'x'));
    return Info(*stub, context).error_code();
  };
  EXPECT_EQ(call_with("--max-header-bytes=8KiB", 7000), StatusCode::OK);
  EXPECT_EQ(call_with("--max-header-bytes=8KiB", 9000), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(call_with("--max-header-bytes=16KiB", 9000), StatusCode::OK);
}

// Connected clients stay served. Places come back as handshakes end or fail.
TEST(ConnectionLife, HandshakesUnderWayAreBounded) {
  const TestCa ca;
  const std::string base = testing::TempDir() + "/connection_life_test";
  const KeyedCertificate issued = ca.Issue({.common_name = "gemmd", .dns_name = "localhost"});
  WriteFileAtOnce(base + ".crt", issued.certificate);
  WriteFileAtOnce(base + ".key", issued.key);
  GemmdProcess process(With({"--max-handshakes=3", absl::StrCat("--tls-certificate=", base, ".crt"),
                             absl::StrCat("--tls-key=", base, ".key")}));
  const ServingAt server = process.AwaitServing();
  const std::string name =
      absl::StrCat("localhost", server.address.substr(server.address.rfind(':')));
  grpc::SslCredentialsOptions trusting;
  trusting.pem_root_certs = ca.certificate();
  const auto channel = OwnChannel(name, grpc::SslCredentials(trusting));
  const auto served = v1::GemmService::NewStub(channel);
  ASSERT_TRUE(Info(*served).ok());
  EXPECT_EQ(Metric(server, InState("serving")), 1);
  {
    std::vector<UniqueFd> silent;
    for (int i = 0; i < 3; ++i) silent.push_back(ConnectTo(server.address));
    EXPECT_TRUE(Eventually([&] { return Metric(server, InState("handshaking")) == 3; }));
    EXPECT_TRUE(Eventually([&] {
      silent.push_back(ConnectTo(server.address));
      return Metric(server, "gemmd_handshakes_refused_total{listener=\"grpc\"}") >= 1;
    }));
    EXPECT_TRUE(Info(*served).ok());
  }
  const auto newcomer = v1::GemmService::NewStub(OwnChannel(name, grpc::SslCredentials(trusting)));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  const grpc::Status status = Info(*newcomer, context);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Metric(server, "gemmd_handshakes_limit{listener=\"grpc\"}"), 3);
}

}  // namespace
}  // namespace gemmd
