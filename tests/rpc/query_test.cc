// Queries: kernels, devices, limits, health, reflection.
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "tests/base/test_clock.h"
#include "tests/rpc/raw_client.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using ::testing::AllOf;
using ::testing::HasSubstr;

using QueryTest = RpcTest;

TEST_F(QueryTest, ListsKernelsWithTheDevicesThatRunThem) {
  grpc::ClientContext context;
  v1::ListKernelsRequest request;
  v1::ListKernelsResponse response;
  request.set_family("host");
  ASSERT_TRUE(stub_->ListKernels(&context, request, &response).ok());
  ASSERT_GE(response.kernels_size(), 2);
  for (const v1::KernelInfo& kernel : response.kernels()) {
    EXPECT_EQ(kernel.family(), "host");
    EXPECT_NE(kernel.summary(), "");
    EXPECT_GT(kernel.types_size(), 0);
    ASSERT_EQ(kernel.devices_size(), 1);
    EXPECT_EQ(kernel.devices(0), "host:0");
    EXPECT_EQ(kernel.unavailable_reason(), "");
  }
}

TEST_F(QueryTest, KernelsThatNoDeviceRunsSayWhy) {
  grpc::ClientContext context;
  v1::ListKernelsResponse response;
  ASSERT_TRUE(stub_->ListKernels(&context, {}, &response).ok());
  for (const v1::KernelInfo& kernel : response.kernels()) {
    EXPECT_NE(kernel.devices_size() == 0, kernel.unavailable_reason().empty()) << kernel.name();
  }
}

TEST_F(QueryTest, UnknownFamilyIsNotFound) {
  grpc::ClientContext context;
  v1::ListKernelsRequest request;
  v1::ListKernelsResponse response;
  request.set_family("hots");
  const grpc::Status status = stub_->ListKernels(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), AllOf(HasSubstr("\"hots\""), HasSubstr("host")));
}

TEST_F(QueryTest, ServerInfo) {
  const std::string id = Put(RandomMatrix({100, 100, gemm::DType::kF32}, 1));
  grpc::ClientContext context;
  v1::GetServerInfoResponse info;
  ASSERT_TRUE(stub_->GetServerInfo(&context, {}, &info).ok());
  EXPECT_EQ(info.version(), GEMMD_VERSION);
  EXPECT_NE(info.commit(), "");
  EXPECT_LE(info.started().seconds(), absl::ToUnixSeconds(absl::Now()));
  ASSERT_EQ(info.devices_size(), 1);
  EXPECT_EQ(info.devices(0).name(), "host:0");
  EXPECT_NE(info.devices(0).model(), "");
  EXPECT_TRUE(info.devices(0).healthy());
  EXPECT_EQ(info.devices(0).memory_bytes(), 32 * kMiB);
  EXPECT_GE(info.devices(0).memory_used_bytes(), 40'000u);
  EXPECT_EQ(info.devices(0).streams(), 6);
  EXPECT_EQ(info.devices(0).estimates(), "");
  EXPECT_EQ(info.limits().max_message_bytes(), kMiB);
  EXPECT_EQ(info.limits().max_jobs_per_stream(), 16u);
  EXPECT_EQ(info.limits().chunk_bytes(), 128 * kKiB);
  EXPECT_GT(info.limits().max_admitted_bytes(), 0u);
  EXPECT_EQ(info.limits().max_batch_count(), 65535);
  EXPECT_EQ(info.limits().max_group_count(), 4096);
  EXPECT_EQ(info.limits().scale_block(), 128);
  EXPECT_EQ(info.limits().unnamed_ttl().seconds(), 3600);
  EXPECT_EQ(info.verify(), v1::VERIFY_OFF);
  EXPECT_EQ(info.load().matrices(), 1u);
  EXPECT_GE(info.load().store_used_bytes(), 40'000u);
  Delete(id);
}

TEST_F(QueryTest, HealthCheckAndWatch) {
  const std::string check = "/grpc.health.v1.Health/Check";
  std::string response;
  for (const char* service : {"", "gemm.v1.GemmService"}) {
    ASSERT_TRUE(CallUnary(channel_, check, HealthRequest(service), response).ok());
    EXPECT_EQ(ParseHealth(response), Serving::kServing);
  }
  EXPECT_EQ(CallUnary(channel_, check, HealthRequest("no.such.Service"), response).error_code(),
            grpc::StatusCode::NOT_FOUND);
  RawCall watch(channel_, "/grpc.health.v1.Health/Watch");
  ASSERT_TRUE(watch.Write(HealthRequest("gemm.v1.GemmService")));
  watch.WritesDone();
  ASSERT_TRUE(watch.Read(response));
  EXPECT_EQ(ParseHealth(response), Serving::kServing);
}

namespace reflection = grpc::reflection::v1;

// The answer of one call, by either of its names.
class QueryReflectionTest : public QueryTest, public testing::WithParamInterface<const char*> {
 protected:
  reflection::ServerReflectionResponse Ask(const reflection::ServerReflectionRequest& request) {
    reflection::ServerReflectionResponse answer;
    std::string bytes;
    EXPECT_TRUE(call_.Write(request.SerializeAsString()));
    EXPECT_TRUE(call_.Read(bytes));
    EXPECT_TRUE(answer.ParseFromString(bytes));
    EXPECT_EQ(answer.original_request().SerializeAsString(), request.SerializeAsString());
    return answer;
  }

  RawCall call_{channel_, GetParam()};
};

INSTANTIATE_TEST_SUITE_P(
    Versions, QueryReflectionTest,
    testing::Values("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"));

TEST_P(QueryReflectionTest, AnswersOneQuestionAfterTheOther) {
  reflection::ServerReflectionRequest request;
  request.set_list_services("*");
  EXPECT_THAT(Ask(request).DebugString(),
              AllOf(HasSubstr("gemm.v1.GemmService"), HasSubstr("grpc.health.v1.Health"),
                    HasSubstr("grpc.reflection.v1.ServerReflection"),
                    HasSubstr("grpc.reflection.v1alpha.ServerReflection")));

  // A tool builds its messages from the file of a symbol, and those that it imports.
  request.set_file_containing_symbol("gemm.v1.GemmService.Multiply");
  const reflection::ServerReflectionResponse files = Ask(request);
  google::protobuf::DescriptorPool pool;
  const auto& protos = files.file_descriptor_response().file_descriptor_proto();
  for (auto proto = protos.rbegin(); proto != protos.rend(); ++proto) {
    google::protobuf::FileDescriptorProto file;
    ASSERT_TRUE(file.ParseFromString(*proto));
    ASSERT_NE(pool.BuildFile(file), nullptr) << file.name();
  }
  EXPECT_NE(pool.FindMessageTypeByName("gemm.v1.MultiplyRequest"), nullptr);
  for (const char* name :
       {"grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"}) {
    request.set_file_containing_symbol(name);
    EXPECT_EQ(Ask(request).file_descriptor_response().file_descriptor_proto_size(), 1) << name;
  }
  request.set_file_by_filename("gemm/v1/gemm.proto");
  EXPECT_EQ(Ask(request).file_descriptor_response().SerializeAsString(),
            files.file_descriptor_response().SerializeAsString());

  request.set_all_extension_numbers_of_type("google.protobuf.MethodOptions");
  EXPECT_TRUE(Ask(request).has_all_extension_numbers_response());
  call_.WritesDone();
  EXPECT_TRUE(call_.Finish().ok());
}

TEST_P(QueryReflectionTest, WhatThereIsNotIsAnAnswerThatNamesIt) {
  reflection::ServerReflectionRequest request;
  const auto error = [&] { return Ask(request).error_response(); };
  request.set_file_by_filename("no/such.proto");
  EXPECT_EQ(error().error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(error().error_message(), HasSubstr("no/such.proto"));
  request.set_file_containing_symbol("no.such.Symbol");
  EXPECT_EQ(error().error_code(), grpc::StatusCode::NOT_FOUND);
  request.set_all_extension_numbers_of_type("no.such.Type");
  EXPECT_EQ(error().error_code(), grpc::StatusCode::NOT_FOUND);
  request.mutable_file_containing_extension()->set_containing_type("gemm.v1.Product");
  EXPECT_EQ(error().error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Ask({}).error_response().error_code(), grpc::StatusCode::UNIMPLEMENTED);
  call_.WritesDone();
  EXPECT_TRUE(call_.Finish().ok());
}

TEST_P(QueryReflectionTest, WhatIsNoRequestEndsTheCall) {
  ASSERT_TRUE(call_.Write("\xff"));
  EXPECT_EQ(call_.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  RawCall long_one(channel_, GetParam());
  ASSERT_TRUE(long_one.Write(std::string(5000, 'x')));
  const grpc::Status status = long_one.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("at most 4096"));
}

ServerOptions FewStreams() {
  ServerOptions options = SmallServer();
  options.connections.streams = 8;
  options.rpc.max_message_bytes = 128 * kKiB;
  return options;
}

struct WithJumpClock {
  JumpClock clock_;  // before the server
};

class FewStreamsTest : protected WithJumpClock, public RpcTest {
 protected:
  FewStreamsTest() : RpcTest(FewStreams()) {}
};

// One that is not over for the server counts, up to 256 with so few streams. A method of every kind
// of service: with callbacks of ours, with gRPC's, with threads that block, and of no service.
TEST_F(FewStreamsTest, CallsThatAreOverCountNoLonger) {
  std::string response;
  for (int i = 0; i < 300; ++i) {
    v1::GetServerInfoResponse info;
    grpc::ClientContext context;
    ASSERT_TRUE(stub_->GetServerInfo(&context, {}, &info).ok()) << i;
    ASSERT_TRUE(
        CallUnary(channel_, "/grpc.health.v1.Health/Check", HealthRequest(""), response).ok())
        << i;
    RawCall reflection(channel_, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
    reflection.WritesDone();
    ASSERT_TRUE(reflection.Finish().ok()) << i;
    ASSERT_EQ(CallUnary(channel_, "/grpc.health.v1.Health/NoSuchMethod", "", response).error_code(),
              grpc::StatusCode::UNIMPLEMENTED)
        << i;
  }
}

// gRPC refuses a message above its limit itself, and tells nobody that the call is over.
TEST_F(FewStreamsTest, MessagesThatAreTooLongAreForgotten) {
  v1::MultiplyUnaryRequest request;
  request.mutable_product()->mutable_a()->set_data(std::string(kMiB, '1'));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 150; ++i) {
      grpc::ClientContext context;
      v1::MultiplyUnaryResponse response;
      const grpc::Status status = stub_->MultiplyUnary(&context, request, &response);
      ASSERT_THAT(status.error_message(), HasSubstr("larger than max")) << round << ", " << i;
    }
    clock_.Jump(absl::Minutes(2));
  }
}

TEST_F(QueryTest, ASecondServerOnThePortIsRefused) {
  ServerOptions options = SmallServer();
  options.address = server_->address();
  const absl::StatusOr<std::unique_ptr<Server>> second = Server::Start(options);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              AllOf(HasSubstr("--address"), HasSubstr(options.address)));
}

TEST_F(QueryTest, ServesOnAUnixSocket) {
  ServerOptions options = SmallServer();
  options.address = "unix:" + testing::TempDir() + "/gemmd_query_test.sock";
  const absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
  ASSERT_TRUE(server.ok()) << server.status();
  auto stub = v1::GemmService::NewStub(
      grpc::CreateChannel((*server)->address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::GetServerInfoResponse info;
  EXPECT_TRUE(stub->GetServerInfo(&context, {}, &info).ok());
}

TEST(ServerStart, AnAddressThatIsNoneIsRefused) {
  ServerOptions options = SmallServer();
  options.address = "nope";
  const absl::Status status = Server::Start(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("--address: 'nope': there is no port"),
                                                   HasSubstr("127.0.0.1:50051")));
}

}  // namespace
}  // namespace gemmd
