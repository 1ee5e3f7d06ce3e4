// Clients that do not read, or do not send promised payload. Others are served meanwhile, and
// nothing is left of such a call.
#include <memory>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/net/loopback.h"
#include "tests/rpc/raw_http2.h"
#include "tests/rpc/server_metric.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using gemm::DType;
using ::testing::HasSubstr;

// 64 blocks of staging a direction; a result of 1 MiB needs eight at once.
ServerOptions RoomyServer() {
  ServerOptions options = SmallServer();
  options.engine.device_memory_bytes = 256 * kMiB;
  options.engine.staging_bytes = 8 * kMiB;
  options.rpc.max_jobs_per_stream = 128;
  return options;
}

v1::Product DrawnProduct(int64_t size) {
  v1::Product product;
  *product.mutable_a() = GeneratedOperand({size, size, DType::kF32}, 1);
  *product.mutable_b() = GeneratedOperand({size, size, DType::kF32}, 2);
  return product;
}

class SlowClientTest : public RpcTest {
 protected:
  explicit SlowClientTest(const ServerOptions& options = RoomyServer()) : RpcTest(options) {}

  int64_t DownloadStaging() const {
    return server_->engine().Stats().devices[0].download_staging_bytes.used;
  }

  // Until the unread calls hold all the staging that they will get.
  void AwaitSteadyStaging() const {
    int64_t before = -1;
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (absl::Now() < deadline) {
      const int64_t now = DownloadStaging();
      if (now > 0 && now == before) return;
      before = now;
      absl::SleepFor(absl::Milliseconds(300));
    }
    ADD_FAILURE() << "staging never settled";
  }

  // A small product in one message and back.
  grpc::Status SmallUnary() {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
    v1::MultiplyUnaryRequest request;
    *request.mutable_product() = DrawnProduct(64);
    v1::MultiplyUnaryResponse response;
    const grpc::Status status = stub_->MultiplyUnary(&context, request, &response);
    EXPECT_EQ(response.data().size(), status.ok() ? 64u * 64 * 4 : 0);
    return status;
  }

  grpc::Status LargeMultiply() {
    StreamClient stream(*stub_, absl::Seconds(20));
    stream.Header(1, DrawnProduct(512));
    stream.HalfClose();
    const JobOutcome outcome = stream.Wait(1);
    EXPECT_EQ(outcome.data.size(), outcome.result.has_value() ? kMiB : 0);
    return stream.Finish();
  }

  grpc::Status GetAll(const std::string& id) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
    v1::GetMatrixRequest request;
    request.mutable_matrix()->set_id(id);
    auto call = stub_->GetMatrix(&context, request);
    v1::GetMatrixResponse response;
    while (call->Read(&response)) {
    }
    return call->Finish();
  }

  // GetMatrix calls on one connection whose answers nobody takes: each may send
  // `window` bytes.
  std::unique_ptr<RawHttp2> UnreadGets(int count, const std::string& id, uint32_t window = 1000) {
    v1::GetMatrixRequest request;
    request.mutable_matrix()->set_id(id);
    auto peer = std::make_unique<RawHttp2>(server_->port(), window);
    for (int i = 0; i < count; ++i) {
      peer->Call(2 * i + 1, "/gemm.v1.GemmService/GetMatrix", request.SerializeAsString(),
                 /*half_close=*/true);
    }
    return peer;
  }

  void ExpectOthersGoOn(const std::string& id) {
    grpc::Status status = SmallUnary();
    EXPECT_TRUE(status.ok()) << "unary: " << status.error_message();
    status = LargeMultiply();
    EXPECT_TRUE(status.ok()) << "stream: " << status.error_message();
    status = GetAll(id);
    EXPECT_TRUE(status.ok()) << "GetMatrix: " << status.error_message();
  }
};

TEST_F(SlowClientTest, OneUnreadStreamOfManyJobsLeavesOthersTheirWay) {
  const std::string id = Put(RandomMatrix({512, 512, DType::kF32}, 3));
  {
    StreamClient unread(*stub_);
    for (uint64_t job = 1; job <= 40; ++job) unread.Header(job, DrawnProduct(512));
    AwaitSteadyStaging();
    EXPECT_LE(DownloadStaging(), static_cast<int64_t>(2 * kMiB)) << "of 8 MiB";
    ExpectOthersGoOn(id);
    unread.context().TryCancel();
    unread.Finish();
  }
  Delete(id);
}

TEST_F(SlowClientTest, ManyUnreadDownloadsLeaveOthersTheirWay) {
  const std::string id = Put(RandomMatrix({512, 512, DType::kF32}, 3));
  {
    const auto unread = UnreadGets(20, id);
    AwaitSteadyStaging();
    ExpectOthersGoOn(id);
  }
  Delete(id);
}

ServerOptions ImpatientServer() {
  ServerOptions options = RoomyServer();
  options.rpc.send_timeout = absl::Seconds(2);
  options.rpc.payload_timeout = absl::Seconds(2);
  options.rpc.read_window_bytes = 128 * kKiB;
  options.metrics_address = "127.0.0.1:0";
  return options;
}

class ImpatientServerTest : public SlowClientTest {
 protected:
  explicit ImpatientServerTest(const ServerOptions& options = ImpatientServer())
      : SlowClientTest(options) {}

  // The value of the metric's sample with these labels.
  double Stalls(const std::string& method, const std::string& direction) const {
    const std::string page = HttpGet(server_->metrics_address(), "/metrics");
    const std::string sample =
        "gemmd_stalls_total{direction=\"" + direction + "\",method=\"" + method + "\"} ";
    const size_t at = page.find(sample);
    return at == std::string::npos ? 0 : std::stod(page.substr(at + sample.size()));
  }

  void ExpectStalls(const std::string& method, const std::string& direction, double count) const {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (Stalls(method, direction) < count && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(50));
    }
    EXPECT_EQ(Stalls(method, direction), count) << method << ", " << direction;
  }
};

TEST_F(ImpatientServerTest, AStreamThatIsNeverReadEndsAndItsJobsWithIt) {
  StreamClient unread(*stub_);
  for (uint64_t job = 1; job <= 40; ++job) unread.Header(job, DrawnProduct(512));
  ExpectStalls("Multiply", "out", 1);
  ExpectHolds(before_);
  const grpc::Status status = unread.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("--send-timeout"));
}

TEST_F(ImpatientServerTest, ADownloadThatIsNeverReadEnds) {
  const std::string id = Put(RandomMatrix({512, 512, DType::kF32}, 3));
  const Held with_matrix = HeldNow();
  const auto unread = UnreadGets(1, id);
  ExpectStalls("GetMatrix", "out", 1);
  ExpectHolds(with_matrix);
  Delete(id);
}

// Nanoseconds since 1970 end in 2262, and clients that mean no bound may send more than that.
TEST_F(SlowClientTest, ADeadlineInTheFarFutureIsNone) {
  v1::MultiplyUnaryRequest request;
  *request.mutable_product() = DrawnProduct(16);
  RawHttp2 client(server_->port(), kMiB);
  uint32_t stream = 1;
  for (const char* hours : {"2000000H", "2100000H", "2562047H", "99999999H"}) {
    client.Call(stream, "/gemm.v1.GemmService/MultiplyUnary", request.SerializeAsString(), true,
                hours);
    EXPECT_TRUE(client.Await("host_", 10)) << hours << ": the report names the kernel";
    stream += 2;
  }
}

ServerOptions PressedServer() {
  ServerOptions options = ImpatientServer();
  options.rpc.send_timeout = absl::Seconds(16);
  return options;
}

class PressedServerTest : public ImpatientServerTest {
 protected:
  PressedServerTest() : ImpatientServerTest(PressedServer()) {}
};

// More unread calls than blocks: those that follow wait a part of the timeout.
TEST_F(PressedServerTest, MoreUnreadDownloadsThanBlocksDelayOthersOnly) {
  const std::string id = Put(RandomMatrix({512, 512, DType::kF32}, 3));
  {
    const auto unread = UnreadGets(150, id);
    ExpectOthersGoOn(id);
  }
  Delete(id);
}

// A peer that stays connected, grants every HTTP/2 window and never reads its socket. The blocks in
// the transport come back when the connection is given up.
TEST_F(ImpatientServerTest, ASocketThatIsNeverReadGivesItsStagingBack) {
  const std::string id = Put(RandomMatrix({2048, 2048, DType::kF32}, 3));  // 16 MiB
  const Held with_matrix = HeldNow();
  const auto peer = UnreadGets(8, id, kLargestWindow);
  ASSERT_TRUE(Eventually([&] { return DownloadStaging() > 0; }));
  ExpectOthersGoOn(id);
  ExpectHolds(with_matrix);
  Delete(id);
}

// The same, but it sips, so that TCP sees it alive: the server ends the connection.
TEST_F(ImpatientServerTest, ASocketThatIsReadInSipsGivesItsStagingBack) {
  const std::string id = Put(RandomMatrix({2048, 2048, DType::kF32}, 3));
  const Held with_matrix = HeldNow();
  const auto peer = UnreadGets(8, id, kLargestWindow);
  ASSERT_TRUE(Eventually([&] { return DownloadStaging() > 0; }));
  std::thread sipping([&] { peer->Sip(12); });
  ExpectOthersGoOn(id);
  ExpectHolds(with_matrix);
  sipping.join();
  Delete(id);
}

// Answers of one message, to a peer that reads its socket and grants no window.
TEST_F(ImpatientServerTest, AnswersThatAreNotTakenAreDropped) {
  const std::string id = Put(RandomMatrix({8, 8, DType::kF32}, 3));
  RawHttp2 peer(server_->port(), 0);
  v1::MultiplyUnaryRequest product;
  *product.mutable_product() = DrawnProduct(64);
  peer.Call(1, "/gemm.v1.GemmService/MultiplyUnary", product.SerializeAsString(), true);
  peer.Call(3, "/gemm.v1.GemmService/ListMatrices", "", true);
  v1::GetMatrixRequest get;
  get.mutable_matrix()->set_id(id);
  peer.Call(5, "/gemm.v1.GemmService/GetMatrix", get.SerializeAsString(), true);
  EXPECT_TRUE(peer.Await("--send-timeout", 20));
  ExpectStalls("MultiplyUnary", "out", 1);
  ExpectStalls("ListMatrices", "out", 1);
  ExpectStalls("GetMatrix", "out", 1);
  Delete(id);
}

TEST_F(ImpatientServerTest, JobsWhosePayloadDoesNotComeEndAndTheStreamGoesOn) {
  const HostProduct operands = {.a = RandomMatrix({300, 400, DType::kF32}, 1),
                                .b = RandomMatrix({400, 200, DType::kF32}, 2)};
  v1::Product product;
  *product.mutable_a() = PayloadOperand(operands.a);
  *product.mutable_b() = PayloadOperand(operands.b);
  v1::Product small = product;
  *small.mutable_a() = PayloadOperand({.shape = {8, 8, DType::kF32}});
  *small.mutable_b() = PayloadOperand({.shape = {8, 8, DType::kF32}});

  StreamClient stream(*stub_);
  for (uint64_t job = 1; job <= 10; ++job) stream.Header(job, job % 2 == 0 ? product : small);
  stream.Header(11, product);
  stream.Payload(11, v1::OPERAND_ROLE_A, operands.a);  // half of what it needs
  for (uint64_t job = 1; job <= 11; ++job) {
    const JobOutcome outcome = stream.Wait(job);
    EXPECT_EQ(outcome.code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    if (outcome.error.has_value()) {
      EXPECT_THAT(outcome.error->message(), HasSubstr("--payload-timeout"));
    }
  }
  ExpectHolds(before_);
  ExpectStalls("Multiply", "in", 11);
  stream.Header(12, product);
  stream.Payload(12, v1::OPERAND_ROLE_A, operands.a);
  stream.Payload(12, v1::OPERAND_ROLE_B, operands.b);
  stream.HalfClose();
  EXPECT_TRUE(stream.Wait(12).result.has_value());
  EXPECT_TRUE(stream.Finish().ok());
}

// A stream without jobs may be quiet for as long as it likes.
TEST_F(ImpatientServerTest, AnIdleStreamStays) {
  StreamClient stream(*stub_);
  absl::SleepFor(absl::Seconds(4));
  stream.Header(1, DrawnProduct(64));
  stream.HalfClose();
  EXPECT_TRUE(stream.Wait(1).result.has_value());
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(ImpatientServerTest, UploadsThatSendNothingEnd) {
  struct Silent {
    grpc::ClientContext context;
    v1::PutMatrixResponse response;
    std::unique_ptr<grpc::ClientWriter<v1::PutMatrixRequest>> call;
  };
  Silent calls[3];  // one sends nothing, one its header, one all but the half-close
  const HostMatrix matrix = RandomMatrix({64, 64, DType::kF32}, 1);
  for (int i = 0; i < 3; ++i) {
    calls[i].call = stub_->PutMatrix(&calls[i].context, &calls[i].response);
    v1::PutMatrixRequest request;
    *request.mutable_header()->mutable_shape() = ProtoShape(matrix.shape);
    if (i >= 1) calls[i].call->Write(request);
    request.mutable_chunk()->set_data(matrix.bytes);
    if (i >= 2) calls[i].call->Write(request);
  }
  for (Silent& silent : calls) {
    const grpc::Status status = silent.call->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    EXPECT_THAT(status.error_message(), HasSubstr("--payload-timeout"));
  }
  ExpectStalls("PutMatrix", "in", 3);
}

}  // namespace
}  // namespace gemmd
