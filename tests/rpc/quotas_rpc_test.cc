// The quotas file through the wire: whoever reaches a bound is refused with details that say
// which and when to try again, and nobody else is hurt.
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/identity/callers.h"
#include "tests/identity/certificates.h"
#include "tests/net/loopback.h"
#include "tests/rpc/raw_client.h"
#include "tests/rpc/raw_http2.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using grpc::StatusCode;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kSquare = 64;  // rows and columns of a matrix of 16 KiB

std::string PathOf(const std::string& what) {
  return absl::StrCat(testing::TempDir(), "/quotas_rpc_test.", what, ".",
                      testing::UnitTest::GetInstance()->current_test_info()->name());
}

// A token is the caller's name with "-token" behind it.
std::string CallerLine(const std::string& name) {
  std::string hex;
  for (const uint8_t byte : HashToken(name + "-token")) {
    absl::StrAppend(&hex, absl::Hex(byte, absl::kZeroPad2));
  }
  return absl::StrCat(name, " call,matrices sha256:", hex, "\n");
}

ServerOptions WithQuotas() {
  ServerOptions options = SmallServer();
  options.metrics_address = "127.0.0.1:0";
  options.identity.callers_file = PathOf("callers");
  options.identity.quotas_file = PathOf("quotas");
  WriteFileAtOnce(options.identity.callers_file,
                  absl::StrCat(CallerLine("alice"), CallerLine("bob")));
  WriteFileAtOnce(options.identity.quotas_file,
                  "alice jobs=1 matrices=2 store-bytes=40KiB streams=3\n");
  return options;
}

// The details of a refusal.
struct Told {
  std::string subject;
  std::string bound;
  std::optional<absl::Duration> retry_after;
};

Told ToldOf(const v1::QuotaFailure& failure, const v1::RetryInfo* retry) {
  Told told;
  EXPECT_EQ(failure.violations_size(), 1);
  if (failure.violations_size() == 1) {
    told.subject = failure.violations(0).subject();
    told.bound = failure.violations(0).description();
  }
  if (retry != nullptr) {
    told.retry_after = absl::Seconds(retry->retry_delay().seconds()) +
                       absl::Nanoseconds(retry->retry_delay().nanos());
  }
  return told;
}

// Reads them from a status as a library of googleapis does: by type URL.
Told ToldBy(const grpc::Status& status) {
  v1::StatusDetails details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), status.error_code());
  EXPECT_EQ(details.message(), status.error_message());
  v1::QuotaFailure failure;
  std::optional<v1::RetryInfo> retry;
  for (const auto& any : details.details()) {
    if (any.type_url() == "type.googleapis.com/google.rpc.QuotaFailure") {
      EXPECT_TRUE(failure.ParseFromString(any.value()));
    } else if (any.type_url() == "type.googleapis.com/google.rpc.RetryInfo") {
      EXPECT_TRUE(retry.emplace().ParseFromString(any.value()));
    } else {
      ADD_FAILURE() << any.type_url();
    }
  }
  return ToldOf(failure, retry.has_value() ? &*retry : nullptr);
}

class QuotasRpcTest : public RpcTest {
 protected:
  explicit QuotasRpcTest(const ServerOptions& options = WithQuotas()) : RpcTest(options) {}

  static void Show(grpc::ClientContext& context, const std::string& caller) {
    context.AddMetadata("authorization", "Bearer " + caller + "-token");
  }

  grpc::Status PutSquare(const std::string& caller, const std::string& name) {
    return PutDrawn(caller, name, {kSquare, kSquare, gemm::DType::kF32});
  }
  grpc::Status PutDrawn(const std::string& caller, const std::string& name, const Shape& shape) {
    grpc::ClientContext context;
    Show(context, caller);
    v1::PutMatrixResponse response;
    auto call = stub_->PutMatrix(&context, &response);
    v1::PutMatrixRequest request;
    v1::PutMatrixHeader& header = *request.mutable_header();
    *header.mutable_shape() = ProtoShape(shape);
    header.mutable_generator()->mutable_uniform();
    header.mutable_keep()->set_name(name);
    call->Write(request);
    call->WritesDone();
    return call->Finish();
  }
  grpc::Status GetNamed(const std::string& caller, const std::string& name) {
    grpc::ClientContext context;
    Show(context, caller);
    v1::GetMatrixRequest request;
    request.mutable_matrix()->set_name(name);
    auto call = stub_->GetMatrix(&context, request);
    v1::GetMatrixResponse response;
    while (call->Read(&response)) {
    }
    return call->Finish();
  }
  void DeleteNamed(const std::string& caller, const std::string& name) {
    grpc::ClientContext context;
    Show(context, caller);
    v1::DeleteMatrixRequest request;
    request.mutable_matrix()->set_name(name);
    v1::DeleteMatrixResponse response;
    EXPECT_TRUE(stub_->DeleteMatrix(&context, request, &response).ok());
  }

  static v1::Product Squares() {
    v1::Product product;
    const Shape shape{kSquare, kSquare, gemm::DType::kF32};
    *product.mutable_a()->mutable_shape() = ProtoShape(shape);
    product.mutable_a()->mutable_payload();
    *product.mutable_b() = GeneratedOperand(shape, 1);
    return product;
  }

  void Install(const std::string& quotas) {
    WriteFileAtOnce(PathOf("quotas"), quotas);
    server_->ReloadIdentity();
  }
  void InstallCallers(const std::string& lines) {
    WriteFileAtOnce(PathOf("callers"), lines);
    server_->ReloadIdentity();
  }
  std::string Metrics() { return HttpGet(server_->metrics_address(), "/metrics"); }
};

// A Multiply stream of a caller, whose jobs wait for their payload.
struct OpenStream {
  OpenStream(v1::GemmService::Stub& stub, const std::string& caller) {
    context.AddMetadata("authorization", "Bearer " + caller + "-token");
    stream = stub.Multiply(&context);
  }
  void Header(uint64_t job_id, const v1::Product& product) {
    v1::MultiplyRequest request;
    request.mutable_header()->set_job_id(job_id);
    *request.mutable_header()->mutable_product() = product;
    EXPECT_TRUE(stream->Write(request));
  }
  v1::MultiplyResponse Read() {
    v1::MultiplyResponse response;
    EXPECT_TRUE(stream->Read(&response));
    return response;
  }
  grpc::Status End() {
    context.TryCancel();
    return stream->Finish();
  }

  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::MultiplyRequest, v1::MultiplyResponse>> stream;
};

TEST_F(QuotasRpcTest, AJobTooManyIsRefusedWithDetailsAndAnotherCallersIsNot) {
  OpenStream alice(*stub_, "alice");
  alice.Header(1, Squares());
  alice.Header(2, Squares());
  const v1::MultiplyResponse refused = alice.Read();
  ASSERT_TRUE(refused.has_error());
  EXPECT_EQ(refused.error().job_id(), 2u);
  EXPECT_EQ(refused.error().code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error().message(), StartsWith("jobs: the caller 'alice' has 1 of at most 1"));
  ASSERT_TRUE(refused.error().has_retry_info());
  const Told told = ToldOf(refused.error().quota_failure(), &refused.error().retry_info());
  EXPECT_EQ(told.subject, "caller:alice");
  EXPECT_EQ(told.bound, "jobs");
  EXPECT_GT(told.retry_after, absl::ZeroDuration());
  OpenStream bob(*stub_, "bob");
  for (uint64_t job = 1; job <= 5; ++job) bob.Header(job, Squares());
  for (uint64_t job = 1; job <= 5; ++job) {
    v1::MultiplyRequest cancel;
    cancel.mutable_cancel()->set_job_id(job);
    EXPECT_TRUE(bob.stream->Write(cancel));
    const v1::MultiplyResponse response = bob.Read();
    EXPECT_EQ(response.error().code(), StatusCode::CANCELLED) << "it had begun";
    EXPECT_FALSE(response.error().has_quota_failure());
  }
  EXPECT_THAT(Metrics(), HasSubstr("gemmd_caller_bounds_total{bound=\"jobs\"} 1"));
  alice.End();
  bob.End();
}

TEST_F(QuotasRpcTest, AMatrixTooManyIsRefusedAndOneLessIsNot) {
  EXPECT_TRUE(PutSquare("alice", "one").ok());
  EXPECT_TRUE(PutSquare("alice", "two").ok());
  const grpc::Status refused = PutSquare("alice", "three");
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  const Told told = ToldBy(refused);
  EXPECT_EQ(told.subject, "caller:alice");
  EXPECT_EQ(told.bound, "matrices");
  EXPECT_FALSE(told.retry_after.has_value()) << "matrices do not go by themselves";
  EXPECT_TRUE(PutSquare("bob", "three").ok());
  DeleteNamed("alice", "one");
  EXPECT_TRUE(PutSquare("alice", "three").ok());
  Install("alice matrices=3 store-bytes=40KiB\n");
  EXPECT_EQ(ToldBy(PutSquare("alice", "four")).bound, "store-bytes");
  for (const char* name : {"two", "three"}) DeleteNamed("alice", name);
  DeleteNamed("bob", "three");
  const std::string metrics = Metrics();
  EXPECT_THAT(metrics, HasSubstr("gemmd_caller_bounds_total{bound=\"matrices\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("gemmd_caller_bounds_total{bound=\"store-bytes\"} 1"));
}

TEST_F(QuotasRpcTest, ACallTooManyIsRefused) {
  std::vector<std::unique_ptr<OpenStream>> streams;
  for (int i = 0; i < 3; ++i) {
    streams.push_back(std::make_unique<OpenStream>(*stub_, "alice"));
    // An answer: so the call is there.
    v1::MultiplyRequest cancel;
    cancel.mutable_cancel()->set_job_id(7);
    EXPECT_TRUE(streams.back()->stream->Write(cancel));
    EXPECT_EQ(streams.back()->Read().error().code(), StatusCode::NOT_FOUND);
  }
  const grpc::Status refused = PutSquare("alice", "x");
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ToldBy(refused).bound, "streams");
  EXPECT_TRUE(ToldBy(refused).retry_after.has_value());
  EXPECT_TRUE(PutSquare("bob", "x").ok());
  DeleteNamed("bob", "x");
  for (const auto& stream : streams) stream->stream->WritesDone();
  for (const auto& stream : streams) EXPECT_TRUE(stream->stream->Finish().ok());
}

// A caller that does one thing at a time is never told that it does two.
TEST_F(QuotasRpcTest, StreamsOfReflectionCountForTheirCaller) {
  constexpr char kReflection[] = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
  const std::string list("\x3a\x00", 2);  // string list_services = 7
  std::vector<std::unique_ptr<RawCall>> open;
  std::string answer;
  for (int i = 0; i < 3; ++i) {
    open.push_back(std::make_unique<RawCall>(channel_, kReflection, "alice-token"));
    ASSERT_TRUE(open.back()->Write(list));
    ASSERT_TRUE(open.back()->Read(answer));
  }
  const grpc::Status refused = RawCall(channel_, kReflection, "alice-token").Finish();
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ToldBy(refused).bound, "streams");
  RawCall other(channel_, kReflection, "bob-token");
  ASSERT_TRUE(other.Write(list));
  EXPECT_TRUE(other.Read(answer));
}

TEST_F(QuotasRpcTest, OneCallAfterTheOtherIsOneCall) {
  Install("alice jobs=1 streams=1\n");
  v1::MultiplyUnaryRequest request;
  *request.mutable_product() = Squares();
  *request.mutable_product()->mutable_a() =
      GeneratedOperand({kSquare, kSquare, gemm::DType::kF32}, 2);
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(GetNamed("alice", "none").error_code(), StatusCode::NOT_FOUND) << i;
    grpc::ClientContext context;
    Show(context, "alice");
    v1::MultiplyUnaryResponse response;
    const grpc::Status status = stub_->MultiplyUnary(&context, request, &response);
    EXPECT_TRUE(status.ok()) << i << ": " << status.error_message();
  }
}

// The answer is there, but its client takes nothing of it.
TEST_F(QuotasRpcTest, ACallThatIsAnsweredIsNotOpen) {
  Install("alice streams=1\n");
  const std::vector<std::string> parts = absl::StrSplit(server_->address(), ':');
  RawHttp2 slow(std::stoi(parts.back()), 0);
  slow.Call(1, "/gemm.v1.GemmService/GetServerInfo", "", true, "", "alice-token");
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (!absl::StrContains(Metrics(), "{method=\"GetServerInfo\",outcome=\"OK\"} 1") &&
         absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  // It is told of just before it is handed to gRPC.
  StatusCode code = StatusCode::RESOURCE_EXHAUSTED;
  while (code == StatusCode::RESOURCE_EXHAUSTED && absl::Now() < deadline) {
    code = GetNamed("alice", "none").error_code();
  }
  EXPECT_EQ(code, StatusCode::NOT_FOUND);
}

TEST_F(QuotasRpcTest, AnotherFileHoldsFromTheNextJobOfAnOpenStream) {
  OpenStream alice(*stub_, "alice");
  alice.Header(1, Squares());
  Install("alice jobs=2\n");
  alice.Header(2, Squares());
  alice.Header(3, Squares());
  const v1::MultiplyResponse refused = alice.Read();
  EXPECT_EQ(refused.error().job_id(), 3u);
  EXPECT_THAT(refused.error().message(), HasSubstr("of at most 2"));
  EXPECT_THAT(Metrics(),
              HasSubstr("gemmd_identity_reloads_total{taken=\"true\",what=\"quotas\"} 1"));
  alice.End();
}

TEST_F(QuotasRpcTest, AWrongFileChangesNothing) {
  Install("alice jobs=many\n");
  const std::string metrics = Metrics();
  EXPECT_THAT(metrics, HasSubstr("gemmd_identity_current{what=\"quotas\"} 0"));
  EXPECT_THAT(metrics, HasSubstr("gemmd_identity_current{what=\"callers\"} 1"));
  EXPECT_THAT(metrics,
              HasSubstr("gemmd_identity_reloads_total{taken=\"false\",what=\"quotas\"} 1"));
  OpenStream alice(*stub_, "alice");
  alice.Header(1, Squares());
  alice.Header(2, Squares());
  EXPECT_EQ(alice.Read().error().code(), StatusCode::RESOURCE_EXHAUSTED);
  alice.End();
  Install("alice jobs=1\n");
  EXPECT_THAT(Metrics(), HasSubstr("gemmd_identity_current{what=\"quotas\"} 1"));
}

// Timeouts of two seconds for payload, and a caller whose rate holds a message of 320 KiB back for
// four: that delay is the server's.
class HeldBackTest : public QuotasRpcTest {
 protected:
  HeldBackTest() : QuotasRpcTest(ShortTimeouts()) { Install("alice bytes-per-second=64KiB\n"); }

  static ServerOptions ShortTimeouts() {
    ServerOptions options = WithQuotas();
    options.engine.upload_timeout = absl::Seconds(2);
    options.rpc.payload_timeout = absl::Seconds(2);
    return options;
  }

  const HostMatrix matrix_ = RandomMatrix({84, 1024, gemm::DType::kF32}, 1);
  static constexpr size_t kFirst = 320 << 10;
};

TEST_F(HeldBackTest, AnUploadIsSlowedDownAndNotEnded) {
  const absl::Time begun = absl::Now();
  grpc::ClientContext context;
  Show(context, "alice");
  v1::PutMatrixResponse response;
  auto call = stub_->PutMatrix(&context, &response);
  v1::PutMatrixRequest request;
  *request.mutable_header()->mutable_shape() = ProtoShape(matrix_.shape);
  request.mutable_header()->mutable_keep()->set_name("slow");
  EXPECT_TRUE(call->Write(request));
  request.mutable_chunk()->set_data(matrix_.bytes.substr(0, kFirst));
  EXPECT_TRUE(call->Write(request));
  request.mutable_chunk()->set_offset(kFirst);
  request.mutable_chunk()->set_data(matrix_.bytes.substr(kFirst));
  EXPECT_TRUE(call->Write(request));
  call->WritesDone();
  EXPECT_TRUE(PutSquare("bob", "x").ok()) << "meanwhile";
  DeleteNamed("bob", "x");
  const grpc::Status status = call->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(response.complete());
  EXPECT_GT(absl::Now() - begun, absl::Seconds(3));
  EXPECT_THAT(Metrics(), HasSubstr("gemmd_caller_bounds_total{bound=\"bytes-per-second\"} "));
  DeleteNamed("alice", "slow");
}

TEST_F(HeldBackTest, AJobIsSlowedDownAndNotEnded) {
  const absl::Time begun = absl::Now();
  OpenStream alice(*stub_, "alice");
  v1::Product product;
  product.mutable_a()->mutable_payload();
  *product.mutable_a()->mutable_shape() = ProtoShape(matrix_.shape);
  *product.mutable_b() = GeneratedOperand({1024, 1, gemm::DType::kF32}, 1);
  alice.Header(1, product);
  v1::MultiplyRequest request;
  request.mutable_chunk()->set_job_id(1);
  request.mutable_chunk()->set_operand(v1::OPERAND_ROLE_A);
  request.mutable_chunk()->set_data(matrix_.bytes.substr(0, kFirst));
  EXPECT_TRUE(alice.stream->Write(request));
  request.mutable_chunk()->set_offset(kFirst);
  request.mutable_chunk()->set_data(matrix_.bytes.substr(kFirst));
  EXPECT_TRUE(alice.stream->Write(request));
  alice.stream->WritesDone();
  const v1::MultiplyResponse first = alice.Read();
  EXPECT_TRUE(first.has_chunk() || first.has_result()) << first.ShortDebugString();
  EXPECT_GT(absl::Now() - begun, absl::Seconds(3));
  v1::MultiplyResponse rest;
  while (alice.stream->Read(&rest)) EXPECT_FALSE(rest.has_error()) << rest.ShortDebugString();
  EXPECT_TRUE(alice.stream->Finish().ok());
}

// Received bytes count, and the next request waits for them.
TEST_F(HeldBackTest, ADownloadLeavesAtOnceAndTheNextRequestWaits) {
  EXPECT_TRUE(PutSquare("alice", "m").ok());
  const absl::Time begun = absl::Now();
  // 16 KiB each: four are saved up, and each of the others takes a quarter of a second.
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(GetNamed("alice", "m").ok());
  EXPECT_GT(absl::Now() - begun, absl::Milliseconds(1500));
  DeleteNamed("alice", "m");
}

// It would wait for two minutes.
TEST_F(QuotasRpcTest, ACallThatWaitsBeginsNothingForATokenThatIsGone) {
  Install("alice bytes-per-second=64KiB\n");
  EXPECT_TRUE(PutDrawn("alice", "m", {2048, 1024, gemm::DType::kF32}).ok());
  EXPECT_TRUE(GetNamed("alice", "m").ok());
  const std::string line = CallerLine("alice");
  int waits = 0;
  // The token is nobody's, then another caller's.
  for (const std::string& now : {CallerLine("bob"), "zoe" + line.substr(line.find(' '))}) {
    auto call = std::async(std::launch::async, [this] {
      grpc::ClientContext context;
      Show(context, "alice");
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
      v1::MultiplyUnaryRequest request;
      *request.mutable_product()->mutable_a() = GeneratedOperand({4, 4, gemm::DType::kF32}, 1);
      *request.mutable_product()->mutable_b() = GeneratedOperand({4, 4, gemm::DType::kF32}, 2);
      v1::MultiplyUnaryResponse response;
      return stub_->MultiplyUnary(&context, request, &response);
    });
    const std::string waiting =
        absl::StrCat("gemmd_caller_bounds_total{bound=\"bytes-per-second\"} ", ++waits);
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    while (!absl::StrContains(Metrics(), waiting) && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    EXPECT_THAT(Metrics(), HasSubstr(waiting));
    InstallCallers(now);
    EXPECT_EQ(call.get().error_code(), StatusCode::UNAUTHENTICATED);
    InstallCallers(line);
  }
  DeleteNamed("alice", "m");
}

// One stream and no queue.
class NoQueueTest : public QuotasRpcTest {
 protected:
  NoQueueTest() : QuotasRpcTest(NoQueue()) {}

  static ServerOptions NoQueue() {
    ServerOptions options = WithQuotas();
    options.engine.streams_per_device = 1;
    options.engine.quick_streams = 0;
    options.engine.max_queued_jobs = 0;
    return options;
  }
};

TEST_F(NoQueueTest, BoundsOfAllCallersSayWhenToTryAgainToo) {
  OpenStream bob(*stub_, "bob");
  v1::Product slow;
  *slow.mutable_a() = GeneratedOperand({1000, 1000, gemm::DType::kF32}, 1);
  *slow.mutable_b() = GeneratedOperand({1000, 1000, gemm::DType::kF32}, 2);
  slow.mutable_kernel()->set_name("host_reference");
  bob.Header(1, slow);
  v1::Product small;
  *small.mutable_a() = GeneratedOperand({8, 8, gemm::DType::kF32}, 1);
  *small.mutable_b() = GeneratedOperand({8, 8, gemm::DType::kF32}, 2);
  bob.Header(2, small);
  const v1::MultiplyResponse refused = bob.Read();
  ASSERT_TRUE(refused.has_error()) << refused.ShortDebugString();
  EXPECT_EQ(refused.error().job_id(), 2u);
  ASSERT_TRUE(refused.error().has_retry_info());
  const Told told = ToldOf(refused.error().quota_failure(), &refused.error().retry_info());
  EXPECT_EQ(told.subject, "server");
  EXPECT_EQ(told.bound, "max-queued-jobs");
  EXPECT_GT(told.retry_after, absl::ZeroDuration());
  bob.End();
}

}  // namespace
}  // namespace gemmd
