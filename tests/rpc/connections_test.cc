// The program's connections: their number, their addresses, and floods.
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gemm/v1/gemm.grpc.pb.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/flags/flags.h"
#include "server/net/descriptors.h"
#include "tests/net/loopback.h"
#include "tests/rpc/gemmd_process.h"
#include "tests/rpc/host_matrix.h"
#include "tests/rpc/raw_http2.h"
#include "tests/rpc/server_metric.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using ::testing::HasSubstr;

std::unique_ptr<v1::GemmService::Stub> NewStub(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt("grpc.use_local_subchannel_pool", 1);  // a connection of its own
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  return v1::GemmService::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
}

// A small product. `wait`: for a connection, up to a minute.
grpc::Status MultiplyOnce(v1::GemmService::Stub& stub, bool wait = true) {
  grpc::ClientContext context;
  context.set_wait_for_ready(wait);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  v1::MultiplyUnaryRequest request;
  *request.mutable_product()->mutable_a() = GeneratedOperand({4, 4, gemm::DType::kF32}, 1);
  *request.mutable_product()->mutable_b() = GeneratedOperand({4, 4, gemm::DType::kF32}, 2);
  v1::MultiplyUnaryResponse response;
  return stub.MultiplyUnary(&context, request, &response);
}

std::vector<std::string> With(std::vector<std::string> more) {
  std::vector<std::string> flags = HostServerFlags();
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

void LimitDescriptors(rlim_t soft, rlim_t hard) {
  const rlimit limit = {.rlim_cur = soft, .rlim_max = hard};
  setrlimit(RLIMIT_NOFILE, &limit);
}

// gRPC 1.51 aborts at some of them (CVE-2023-1428).
TEST(Connections, AHeaderOfGrpcsOwnEndsNoServer) {
  const std::pair<std::string, std::string> headers[] = {{"grpclb_client_stats", "x"},
                                                         {"te", "x"},
                                                         {":scheme", "x"},
                                                         {"lb-token", "x"},
                                                         {"lb-cost-bin", "eA"},
                                                         {"grpc-tags-bin", "eA"}};
  GemmdProcess process(HostServerFlags());
  const std::string address = process.AwaitServing().address;
  for (const auto& [key, value] : headers) {
    RawHttp2 client(std::stoi(address.substr(address.rfind(':') + 1)), kLargestWindow);
    client.CallWithHeader(1, "/gemm.v1.GemmService/GetServerInfo", key, value);
    client.Await("grpc-status", 1);
    const grpc::Status after = MultiplyOnce(*NewStub(address));
    ASSERT_TRUE(after.ok()) << key << ": " << after.error_message();
  }
  process.Signal(SIGTERM);
  EXPECT_EQ(process.ExitCode(), kExitOk);
}

TEST(Connections, FarMoreThanDescriptorsThenService) {
  rlimit own;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &own), 0);
  LimitDescriptors(std::min<rlim_t>(own.rlim_max, 4096), own.rlim_max);
  GemmdProcess process(HostServerFlags(), [] { LimitDescriptors(256, 256); });
  const ServingAt server = process.AwaitServing();
  const auto before = NewStub(server.address);
  ASSERT_TRUE(MultiplyOnce(*before).ok());
  {
    std::vector<UniqueFd> flood;
    for (int i = 0; i < 800; ++i) flood.push_back(ConnectTo(server.address));
    // During the flood, connected clients are served and metrics are there.
    const grpc::Status in_flood = MultiplyOnce(*before);
    EXPECT_TRUE(in_flood.ok()) << in_flood.error_message();
    EXPECT_EQ(Metric(server, "gemmd_connections_limit{listener=\"grpc\"}"), 128);
    EXPECT_LE(Metric(server, "gemmd_connections{listener=\"grpc\"}"), 128);
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    double refused = 0;
    while (refused <= 0 && absl::Now() < deadline) {
      refused = Metric(server, "gemmd_connections_refused_total{listener=\"grpc\"}");
    }
    EXPECT_GT(refused, 0);
  }
  const grpc::Status after = MultiplyOnce(*NewStub(server.address));
  EXPECT_TRUE(after.ok()) << after.error_message();
  EXPECT_EQ(Metric(server, "gemmd_accept_failures_total{listener=\"grpc\"}"), 0);
  process.Signal(SIGTERM);
  EXPECT_EQ(process.ExitCode(), kExitOk);
}

// Acknowledgements of no SETTINGS: gRPC reads them as fast as they come.
TEST(Connections, OneThatFloodsWithFramesIsClosed) {
  GemmdProcess process(HostServerFlags());
  const ServingAt server = process.AwaitServing();
  const auto before = NewStub(server.address);
  ASSERT_TRUE(MultiplyOnce(*before).ok());
  const UniqueFd flood = ConnectTo(server.address);
  std::string frames;
  for (int i = 0; i < 7000; ++i) frames += std::string("\0\0\0\4\1\0\0\0\0", 9);
  ASSERT_TRUE(
      SendAll(flood, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9)));
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (SendAll(flood, frames)) {
    ASSERT_LT(absl::Now(), deadline);
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_TRUE(Eventually(
      [&] { return Metric(server, "gemmd_connections_dropped_total{reason=\"frames\"}") == 1; }));
  EXPECT_TRUE(MultiplyOnce(*before).ok()) << "connected clients of its address are served";
}

// 24 MiB in small messages.
TEST(Connections, AnUploadIsNoFlood) {
  GemmdProcess process(HostServerFlags());
  const ServingAt server = process.AwaitServing();
  const auto stub = NewStub(server.address);
  grpc::ClientContext context;
  v1::PutMatrixResponse response;
  const auto call = stub->PutMatrix(&context, &response);
  v1::PutMatrixRequest request;
  const HostMatrix matrix = RandomMatrix({3072, 1024, gemm::DType::kF64}, 1);
  *request.mutable_header()->mutable_shape() = ProtoShape(matrix.shape);
  ASSERT_TRUE(call->Write(request));
  constexpr size_t kChunk = 1000;
  for (size_t offset = 0; offset < matrix.bytes.size(); offset += kChunk) {
    request.mutable_chunk()->set_offset(offset);
    request.mutable_chunk()->set_data(matrix.bytes.substr(offset, kChunk));
    if (!call->Write(request)) break;
  }
  call->WritesDone();
  const grpc::Status status = call->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(response.complete());
  EXPECT_LE(Metric(server, "gemmd_connections_dropped_total{reason=\"frames\"}"), 0);
}

// Live calls are bounded by HTTP/2; one that is reset is not live, but not over either. The bound
// on those is four times as large, and at least 256.
TEST(Connections, OneThatResetsItsCallsFasterThanTheyEndIsClosed) {
  for (const std::string path : {"/gemm.v1.GemmService/MultiplyUnary",
                                 "/gemm.v1.GemmService/Multiply", "/grpc.health.v1.Health/Check",
                                 "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                                 "/grpc.health.v1.Health/NoSuchMethod"}) {
    // Each flood leaves gRPC with more threads. On busy processors these may end calls as fast as
    // one of them reads the next: then it is no flood. So each has a server of its own, and another
    // one if that happens.
    bool closed = false;
    for (int attempt = 0; attempt < 5 && !closed; ++attempt) {
      GemmdProcess process(With({"--max-streams-per-connection=1"}));
      const ServingAt server = process.AwaitServing();
      const std::vector<std::string> parts = absl::StrSplit(server.address, ':');
      RawHttp2 flood(std::stoi(parts.back()), kLargestWindow);
      constexpr int kBatch = 1000;
      for (int i = 0; i < 20 && !closed; ++i) {
        flood.CallAndReset(1 + 2 * kBatch * i, kBatch, path);
        closed = flood.AwaitEnd(0.5);
      }
      if (!closed) continue;
      const auto counted = [&] {
        return Metric(server, "gemmd_connections_dropped_total{reason=\"resets\"}");
      };
      EXPECT_TRUE(Eventually([&] { return counted() >= 1; })) << path << ": counted just after";
      EXPECT_EQ(counted(), 1) << path;
      const grpc::Status after = MultiplyOnce(*NewStub(server.address));
      EXPECT_TRUE(after.ok()) << path << ": " << after.error_message();
    }
    EXPECT_TRUE(closed) << path;
  }
}

// However many connections they come on.
TEST(Connections, CallsOfAnAddressAreBoundedOverItsConnections) {
  GemmdProcess process(With({"--max-calls-per-caller=256"}));
  const ServingAt server = process.AwaitServing();
  const int port = std::stoi(std::vector<std::string>(absl::StrSplit(server.address, ':')).back());
  std::vector<std::unique_ptr<RawHttp2>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawHttp2>(port, kLargestWindow));
    // Calls that are open: whether they are reset makes no difference.
    for (uint32_t call = 0; call < 100; ++call) {
      clients.back()->Call(1 + 2 * call, "/grpc.health.v1.Health/Watch", "", true);
    }
  }
  EXPECT_TRUE(Eventually(
      [&] { return Metric(server, "gemmd_connections_dropped_total{reason=\"calls\"}") >= 1; }));
  EXPECT_TRUE(Eventually([&] {
    ConnectTo(port);
    return Metric(server, "gemmd_connections_refused_for_calls_total{listener=\"grpc\"}") >= 1;
  }));
  EXPECT_EQ(Metric(server, "gemmd_unfinished_calls_limit{listener=\"grpc\"}"), 256);
  clients.clear();
  const grpc::Status after = MultiplyOnce(*NewStub(server.address));
  EXPECT_TRUE(after.ok()) << after.error_message();
  EXPECT_TRUE(
      Eventually([&] { return Metric(server, "gemmd_unfinished_calls{listener=\"grpc\"}") == 0; }));
  process.Signal(SIGTERM);
  EXPECT_THAT(process.ReadAll(), HasSubstr("too many calls that are not over"));
  EXPECT_EQ(process.ExitCode(), kExitOk);
}

// gRPC's own reflection has one for each.
TEST(Connections, OpenStreamsOfReflectionTakeNoThreads) {
  GemmdProcess process(HostServerFlags());
  const ServingAt server = process.AwaitServing();
  const int port = std::stoi(std::vector<std::string>(absl::StrSplit(server.address, ':')).back());
  const auto threads = [&process] {
    std::ifstream status(absl::StrCat("/proc/", process.pid(), "/status"));
    std::string word;
    int count = 0;
    while (status >> word) {
      if (word == "Threads:") status >> count;
    }
    return count;
  };
  ASSERT_TRUE(MultiplyOnce(*NewStub(server.address)).ok());
  const int before = threads();
  constexpr int kStreams = 400;
  RawHttp2 client(port, kLargestWindow);
  for (uint32_t i = 0; i < kStreams; ++i) {
    client.Call(1 + 2 * i, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                std::string("\x3a\x00", 2), false);
  }
  for (uint32_t i = 0; i < kStreams; ++i) {
    client.Call(1 + 2 * (kStreams + i), "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                std::string("\x3a\x00", 2), false);
  }
  ASSERT_TRUE(client.Await("gemm.v1.GemmService", 30));
  EXPECT_TRUE(Eventually(
      [&] { return Metric(server, "gemmd_unfinished_calls{listener=\"grpc\"}") >= kStreams; }));
  EXPECT_LT(threads(), before + 50) << before << " before";
  process.Signal(SIGTERM);
  EXPECT_EQ(process.ExitCode(), kExitOk);
}

// It has no address to be found by: it is refused, and the log says so.
TEST(Connections, AFloodOnAUnixSocketIsLogged) {
  const std::string path = testing::TempDir() + "/gemmd-flood.sock";
  GemmdProcess process(With({"--max-streams-per-connection=1", "--address=unix:" + path}));
  process.AwaitServing();
  RawHttp2 flood(path, kLargestWindow);
  for (int i = 0; i < 20; ++i) {
    flood.CallAndReset(1 + 2000 * i, 1000, "/gemm.v1.GemmService/Multiply");
  }
  EXPECT_FALSE(flood.AwaitEnd(0.5));
  process.Signal(SIGTERM);
  EXPECT_THAT(process.ReadAll(), HasSubstr("cannot be closed"));
  EXPECT_EQ(process.ExitCode(), kExitOk);
}

TEST(Connections, AFewThatAreResetAreNoFloodWhereFewMayBeOpen) {
  GemmdProcess process(With({"--max-streams-per-connection=1"}));
  const ServingAt server = process.AwaitServing();
  const std::vector<std::string> parts = absl::StrSplit(server.address, ':');
  RawHttp2 client(std::stoi(parts.back()), kLargestWindow);
  client.CallAndReset(1, 200, "/gemm.v1.GemmService/Multiply");
  EXPECT_FALSE(client.AwaitEnd(1));
}

// As many calls as HTTP/2 allows, again and again, are no flood.
TEST(Connections, OneThatResetsWhatItMayHaveOpenStays) {
  GemmdProcess process(With({"--max-streams-per-connection=1024"}));
  const ServingAt server = process.AwaitServing();
  const std::vector<std::string> parts = absl::StrSplit(server.address, ':');
  RawHttp2 client(std::stoi(parts.back()), kLargestWindow);
  // More than the bound in all, each round after the calls of those before have ended.
  constexpr int kRounds = 6, kCalls = 1024;
  for (int round = 0; round < kRounds; ++round) {
    client.CallAndReset(1 + 2 * kCalls * round, kCalls, "/gemm.v1.GemmService/Multiply");
    const auto ended = [&] {
      return Metric(server, "gemmd_request_duration_seconds_count{method=\"Multiply\"}");
    };
    // Each call has an answer of 105 bytes. They are read, or the client's window is full after a
    // round or two, and the connection is cut 20 s later (ConnectionPatience).
    bool closed = false;
    const auto ended_or_closed = [&] {
      closed = client.AwaitEnd(0);
      return closed || ended() >= kCalls * (round + 1);
    };
    ASSERT_TRUE(Eventually(ended_or_closed)) << "round " << round << ": " << ended() << " ended";
    ASSERT_FALSE(closed) << "round " << round << ": " << ended() << " ended";
  }
  EXPECT_FALSE(client.AwaitEnd(1));
}

TEST(Connections, TheSoftLimitOnDescriptorsIsRaised) {
  GemmdProcess process(HostServerFlags(), [] { LimitDescriptors(128, 1000); });
  const ServingAt server = process.AwaitServing();
  EXPECT_EQ(Metric(server, "process_max_fds"), 1000);
  EXPECT_EQ(Metric(server, "gemmd_connections_limit{listener=\"grpc\"}"), 750);
}

TEST(Connections, SilentOnesGiveTheirPlacesBack) {
  GemmdProcess process(With({"--max-connections=2"}));
  const ServingAt server = process.AwaitServing();
  const UniqueFd silent[] = {ConnectTo(server.address), ConnectTo(server.address)};
  const auto stub = NewStub(server.address);
  const grpc::Status refused = MultiplyOnce(*stub, /*wait=*/false);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(ClosedByPeer(silent[0]));
  EXPECT_TRUE(ClosedByPeer(silent[1]));
  const grpc::Status status = MultiplyOnce(*stub);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST(Connections, MoreThanDescriptorsIsAWrongFlag) {
  GemmdProcess process(With({"--max-connections=201"}), [] { LimitDescriptors(264, 264); });
  EXPECT_THAT(process.ReadAll(), HasSubstr("--max-connections: 201; allowed: up to 136"));
  EXPECT_EQ(process.ExitCode(), kExitUsage);
}

TEST(Connections, EveryKindOfAddressServes) {
  const std::string path = testing::TempDir() + "/gemmd-connections.sock";
  for (const std::string& address : {std::string("127.0.0.1:0"), std::string("localhost:0"),
                                     std::string("[::1]:0"), absl::StrCat("unix:", path)}) {
    GemmdProcess process(With({"--address=" + address}));
    const ServingAt server = process.AwaitServing();
    if (server.address.empty() && address[0] == '[') {  // no IPv6 here
      process.Wait();
      continue;
    }
    const grpc::Status status = MultiplyOnce(*NewStub(server.address));
    EXPECT_TRUE(status.ok()) << address << ": " << status.error_message();
    process.Signal(SIGTERM);
    EXPECT_EQ(process.ExitCode(), kExitOk) << address;
  }
  struct stat file {};
  EXPECT_NE(lstat(path.c_str(), &file), 0) << "the socket's file is left";
}

TEST(Connections, SeveralAddressesServeAtOnce) {
  const std::string path = testing::TempDir() + "/gemmd-several.sock";
  GemmdProcess process(With({"--address=127.0.0.1:0,localhost:0,unix:" + path}));
  const std::vector<std::string> addresses =
      absl::StrSplit(process.AwaitServing().address, ',', absl::SkipEmpty());
  ASSERT_EQ(addresses.size(), 3u);
  EXPECT_EQ(addresses[2], "unix:" + path);
  for (const std::string& address : addresses) {
    const grpc::Status status = MultiplyOnce(*NewStub(address));
    EXPECT_TRUE(status.ok()) << address << ": " << status.error_message();
  }
  process.Signal(SIGTERM);
  EXPECT_EQ(process.ExitCode(), kExitOk);
  struct stat file {};
  EXPECT_NE(lstat(path.c_str(), &file), 0) << "the socket's file is left";
}

TEST(Connections, OneAddressThatCannotBeHadIsAnError) {
  const std::string path = testing::TempDir() + "/gemmd-one-of-two.sock";
  GemmdProcess process(With({"--insecure=all", "--address=unix:" + path + ",192.0.2.1:50051"}));
  EXPECT_THAT(process.ReadAll(), HasSubstr("192.0.2.1:50051"));
  EXPECT_EQ(process.ExitCode(), kExitFailure);
  struct stat file {};
  EXPECT_NE(lstat(path.c_str(), &file), 0) << "the socket's file is left";
}

TEST(Connections, AnEndedListenerIsNoticed) {
  // Held by the server's process alone: so the test takes its place.
  ServerOptions options;
  options.address = "127.0.0.1:0";
  options.metrics_address = "";
  options.engine.devices = "host";
  options.engine.device_memory_bytes = 32 * kMiB;
  options.engine.staging_bytes = 2 * kMiB;
  options.engine.staging_block_bytes = 128 * kKiB;
  const auto server = Server::Start(options);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_TRUE((*server)->CheckHealth().ok());
  for (int fd = 0; fd < DescriptorLimit(); ++fd) {
    int listens = 0;
    socklen_t length = sizeof(listens);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 && listens != 0) {
      shutdown(fd, SHUT_RDWR);
    }
  }
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while ((*server)->CheckHealth().ok() && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_EQ((*server)->CheckHealth().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace gemmd
