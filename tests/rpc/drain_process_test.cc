// The program's orderly end: readiness first, then refusals, then exit 0 in time.
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/flags/flags.h"
#include "tests/net/loopback.h"
#include "tests/rpc/gemmd_process.h"
#include "tests/rpc/host_matrix.h"
#include "tests/rpc/raw_client.h"
#include "tests/rpc/raw_http2.h"
#include "tests/rpc/server_metric.h"
#include "tests/rpc/stream_client.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using grpc::StatusCode;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class DrainProcess : public testing::Test {
 protected:
  void Start(std::vector<std::string> more) {
    std::vector<std::string> flags = HostServerFlags();
    flags.insert(flags.end(), more.begin(), more.end());
    process_ = std::make_unique<GemmdProcess>(flags);
    server_ = process_->AwaitServing();
    channel_ = grpc::CreateChannel(server_.address, grpc::InsecureChannelCredentials());
    stub_ = v1::GemmService::NewStub(channel_);
  }

  int Port() const {
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(server_.address.substr(server_.address.rfind(':') + 1), &port));
    return port;
  }

  Serving Health(const std::string& service) {
    std::string answer;
    const grpc::Status status =
        CallUnary(channel_, "/grpc.health.v1.Health/Check", HealthRequest(service), answer);
    return status.ok() ? ParseHealth(answer) : Serving::kUnknown;
  }

  grpc::Status Multiply() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    v1::MultiplyUnaryRequest request;
    *request.mutable_product()->mutable_a() = GeneratedOperand({4, 4, gemm::DType::kF32}, 1);
    *request.mutable_product()->mutable_b() = GeneratedOperand({4, 4, gemm::DType::kF32}, 2);
    v1::MultiplyUnaryResponse response;
    return stub_->MultiplyUnary(&context, request, &response);
  }

  grpc::Status ListKernels() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    v1::ListKernelsResponse response;
    return stub_->ListKernels(&context, {}, &response);
  }

  // Keeps a matrix of `bytes` on the server.
  std::string Keep(int64_t bytes) {
    grpc::ClientContext context;
    v1::PutMatrixResponse response;
    auto call = stub_->PutMatrix(&context, &response);
    const HostMatrix matrix = RandomMatrix({bytes / 4096, 1024, gemm::DType::kF32}, 1);
    v1::PutMatrixRequest request;
    *request.mutable_header()->mutable_shape() = ProtoShape(matrix.shape);
    call->Write(request);
    constexpr size_t kChunk = 1 << 20;
    for (size_t offset = 0; offset < matrix.bytes.size(); offset += kChunk) {
      request.mutable_chunk()->set_offset(offset);
      request.mutable_chunk()->set_data(matrix.bytes.substr(offset, kChunk));
      call->Write(request);
    }
    call->WritesDone();
    EXPECT_TRUE(call->Finish().ok());
    return response.matrix().id();
  }

  std::unique_ptr<GemmdProcess> process_;
  ServingAt server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::GemmService::Stub> stub_;
};

TEST_F(DrainProcess, ReadyAndHealthyUntilASignal) {
  Start({});
  EXPECT_THAT(HttpGet(server_.metrics, "/readyz"), AllOf(HasSubstr(" 200 "), HasSubstr("ready")));
  EXPECT_THAT(HttpGet(server_.metrics, "/livez"), HasSubstr(" 200 "));
  EXPECT_EQ(Health(""), Serving::kServing);
  EXPECT_EQ(Health("gemm.v1.GemmService"), Serving::kServing);
  EXPECT_EQ(Health("gemm.v1.NoService"), Serving::kUnknown) << "NOT_FOUND";
}

// The delay never passes here: a second signal ends it.
TEST_F(DrainProcess, InItsDelayItServesAndSaysThatItIsNotReady) {
  Start({"--drain-delay=1h"});
  StreamClient before(*stub_);
  before.Cancel(99);
  EXPECT_EQ(before.Wait(99).code(), StatusCode::NOT_FOUND);
  process_->Signal(SIGTERM);
  EXPECT_TRUE(
      Eventually([this] { return absl::StrContains(HttpGet(server_.metrics, "/readyz"), "503"); }));
  EXPECT_THAT(HttpGet(server_.metrics, "/readyz"), HasSubstr("not ready: draining"));
  EXPECT_THAT(HttpGet(server_.metrics, "/livez"), HasSubstr(" 200 "));
  EXPECT_EQ(Health(""), Serving::kNotServing);
  EXPECT_EQ(Health("gemm.v1.GemmService"), Serving::kNotServing);
  // Also on a connection of its own.
  EXPECT_TRUE(Multiply().ok());
  EXPECT_GE(ConnectTo(server_.address).get(), 0);
  v1::Product product;
  *product.mutable_a() = GeneratedOperand({4, 4, gemm::DType::kF32}, 1);
  *product.mutable_b() = GeneratedOperand({4, 4, gemm::DType::kF32}, 2);
  before.Header(1, product);
  EXPECT_TRUE(before.Wait(1).result.has_value());
  process_->Signal(SIGTERM);
  EXPECT_TRUE(WIFSIGNALED(process_->Wait()));
}

TEST_F(DrainProcess, AfterItsDelayItEndsByItself) {
  Start({"--drain-delay=100ms"});
  process_->Signal(SIGTERM);
  EXPECT_EQ(process_->ExitCode(), kExitOk);
  EXPECT_THAT(process_->ReadAll(), AllOf(HasSubstr("draining"), HasSubstr("\"msg\":\"stopped\"")));
}

TEST_F(DrainProcess, NewJobsAndQuestionsAreRefusedAndWhatRunsEnds) {
  Start({"--drain-timeout=5m"});
  const HostMatrix matrix = RandomMatrix({8, 8, gemm::DType::kF32}, 1);
  v1::Product product;
  *product.mutable_a() = PayloadOperand(matrix);
  *product.mutable_b() = PayloadOperand(matrix);
  StreamClient stream(*stub_);
  stream.Header(1, product);
  stream.Cancel(99);
  EXPECT_EQ(stream.Wait(99).code(), StatusCode::NOT_FOUND);
  process_->Signal(SIGTERM);
  EXPECT_TRUE(Eventually([this] { return !Multiply().ok(); }));
  for (const grpc::Status& status : {Multiply(), ListKernels()}) {
    EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE);
    EXPECT_THAT(status.error_message(), StartsWith("the server is draining"));
  }
  stream.Header(2, product);
  EXPECT_EQ(stream.Wait(2).code(), StatusCode::UNAVAILABLE);
  stream.Payload(1, v1::OPERAND_ROLE_A, matrix);
  stream.Payload(1, v1::OPERAND_ROLE_B, matrix);
  EXPECT_TRUE(stream.Wait(1).result.has_value());
  EXPECT_EQ(stream.Finish().error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(process_->ExitCode(), kExitOk);
}

// As a client does that fetches a large result over several connections.
TEST_F(DrainProcess, ResultsThatJobsHaveKeptMayBeFetched) {
  Start({"--drain-timeout=5m"});
  const HostMatrix matrix = RandomMatrix({8, 8, gemm::DType::kF32}, 1);
  v1::Product product;
  *product.mutable_a() = PayloadOperand(matrix);
  *product.mutable_b() = PayloadOperand(matrix);
  product.mutable_result()->mutable_keep()->mutable_ttl()->set_seconds(60);
  StreamClient stream(*stub_);
  stream.Header(1, product);
  stream.Header(2, product);  // holds the drain until the test has seen enough
  stream.Cancel(99);
  EXPECT_EQ(stream.Wait(99).code(), StatusCode::NOT_FOUND);
  process_->Signal(SIGTERM);
  EXPECT_TRUE(Eventually([this] { return !Multiply().ok(); }));
  stream.Payload(1, v1::OPERAND_ROLE_A, matrix);
  stream.Payload(1, v1::OPERAND_ROLE_B, matrix);
  const auto ended = stream.Wait(1);
  ASSERT_TRUE(ended.result.has_value());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  v1::GetMatrixRequest request;
  request.mutable_matrix()->set_id(ended.result->kept().id());
  const auto reader = stub_->GetMatrix(&context, request);
  v1::GetMatrixResponse response;
  size_t bytes = 0;
  while (reader->Read(&response)) bytes += response.data().size();
  const grpc::Status fetched = reader->Finish();
  EXPECT_TRUE(fetched.ok()) << fetched.error_message();
  EXPECT_EQ(bytes, matrix.bytes.size());
  grpc::ClientContext deletes;
  v1::DeleteMatrixRequest deleted;
  *deleted.mutable_matrix() = request.matrix();
  v1::DeleteMatrixResponse none;
  EXPECT_TRUE(stub_->DeleteMatrix(&deletes, deleted, &none).ok());
  stream.Cancel(2);
  EXPECT_EQ(process_->ExitCode(), kExitOk);
}

// The answer is taken later than the grace for cancelled calls, 2 s, after its job has ended.
TEST_F(DrainProcess, AnAnswerMayBeReadForAsLongAsJobsMayRun) {
  Start({"--drain-timeout=5m", "--send-timeout=5m"});
  v1::MultiplyUnaryRequest request;
  v1::Product& product = *request.mutable_product();
  *product.mutable_a() = GeneratedOperand({64, 64, gemm::DType::kF32}, 1);
  *product.mutable_b() = GeneratedOperand({64, 64, gemm::DType::kF32}, 2);
  product.mutable_kernel()->set_name("host_reference");
  RawHttp2 slow(Port(), 0);
  slow.Call(1, "/gemm.v1.GemmService/MultiplyUnary", request.SerializeAsString(), true);
  EXPECT_TRUE(Eventually([this] {
    return Metric(server_, "gemmd_jobs_total{dtype=\"f32\",family=\"host\",outcome=\"OK\"}") == 1;
  }));
  process_->Signal(SIGTERM);
  EXPECT_TRUE(Eventually([this] { return !ListKernels().ok(); }));
  absl::SleepFor(absl::Seconds(4));
  slow.Grant(1, 1 << 20);
  // As HTTP/2 has it: the value's length, then OK.
  EXPECT_TRUE(slow.Await(absl::StrCat("grpc-status\x01", "0"), 60));
  EXPECT_EQ(process_->ExitCode(), kExitOk);
}

// 71 would be the code of a process that had to break off.
TEST_F(DrainProcess, ClientsThatReadNothingDoNotHoldIt) {
  Start({"--drain-timeout=4s", "--device-memory-bytes=128MiB", "--staging-bytes=16MiB"});
  const std::string id = Keep(32 << 20);
  v1::GetMatrixRequest request;
  request.mutable_matrix()->set_id(id);
  // One offers no room to HTTP/2, the other never reads its socket.
  RawHttp2 no_window(Port(), 0);
  RawHttp2 no_reads(Port(), kLargestWindow);
  for (RawHttp2* const peer : {&no_window, &no_reads}) {
    peer->Call(1, "/gemm.v1.GemmService/GetMatrix", request.SerializeAsString(), true);
  }
  EXPECT_TRUE(Eventually([this] {
    return Metric(server_, "gemmd_staging_bytes{device=\"host:0\",direction=\"out\"}") > 0;
  }));
  process_->Signal(SIGTERM);
  EXPECT_EQ(process_->ExitCode(), kExitOk);
  EXPECT_THAT(process_->ReadAll(), HasSubstr("\"msg\":\"stopped\""));
}

}  // namespace
}  // namespace gemmd
