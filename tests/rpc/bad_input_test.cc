// Bad input has its code and sentence, hurts nobody else, and leaves nothing.
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/context/method.h"
#include "tests/rpc/bad_benchmarks.h"
#include "tests/rpc/bad_jobs.h"
#include "tests/rpc/bad_transfers.h"
#include "tests/rpc/raw_client.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using ::testing::HasSubstr;

constexpr uint64_t kGoodJob = 1;
constexpr uint64_t kNextJob = 8;

class BadInputTest : public RpcTest {
 protected:
  BadInputTest() : RpcTest(BoundedServer()) {
    world_.operands = {.a = RandomMatrix({8, 4, gemm::DType::kF32}, 1),
                       .b = RandomMatrix({4, 6, gemm::DType::kF32}, 2)};
    *world_.good.mutable_a() = PayloadOperand(world_.operands.a);
    *world_.good.mutable_b() = PayloadOperand(world_.operands.b);
    world_.deleted_id = Put(RandomMatrix({8, 8, gemm::DType::kF32}, 3));
    Delete(world_.deleted_id);
    world_.resident_id = Put(RandomMatrix({8, 8, gemm::DType::kF32}, 4), "resident");
    held_ = HeldNow();
  }

  void TearDown() override {
    ExpectHolds(held_);
    Delete(world_.resident_id);
    RpcTest::TearDown();
  }

  void ExpectGood(const JobOutcome& outcome) {
    ASSERT_TRUE(outcome.result.has_value())
        << (outcome.error.has_value() ? outcome.error->message() : "no answer");
    ASSERT_EQ(outcome.data.size(), 8 * 6 * 4u);
    EXPECT_LE(WorstError(world_.good, world_.operands, {{8, 6}, outcome.data}), 1);
  }

  void SendGood(StreamClient& stream, uint64_t job_id) {
    stream.Header(job_id, world_.good);
    stream.Payload(job_id, v1::OPERAND_ROLE_A, world_.operands.a, 50);
    stream.Payload(job_id, v1::OPERAND_ROLE_B, world_.operands.b, 50);
  }

  void ExpectNextRequestSucceeds() { ExpectGood(Multiply(world_.good, world_.operands)); }

  World world_;
  Held held_;
};

void ExpectError(const JobOutcome& outcome, const BadJob& bad) {
  ASSERT_TRUE(outcome.error.has_value()) << "the job did not fail";
  EXPECT_EQ(outcome.code(), bad.code) << outcome.error->message();
  for (const std::string& part : bad.sentence) {
    EXPECT_THAT(outcome.error->message(), HasSubstr(part));
  }
}

class BadJobTest : public BadInputTest, public testing::WithParamInterface<BadJob> {};

TEST_P(BadJobTest, FailsAloneWithItsSentence) {
  const BadJob& bad = GetParam();
  StreamClient stream(*stub_);
  // A job that is under way while the bad one comes.
  stream.Header(kGoodJob, world_.good);
  stream.Payload(kGoodJob, v1::OPERAND_ROLE_A, world_.operands.a, 50);
  bad.send(stream, world_);
  if (!bad.at_half_close) ExpectError(stream.Wait(kBadJob), bad);
  stream.Payload(kGoodJob, v1::OPERAND_ROLE_B, world_.operands.b, 50);
  SendGood(stream, kNextJob);
  ExpectGood(stream.Wait(kGoodJob));
  ExpectGood(stream.Wait(kNextJob));
  stream.HalfClose();
  if (bad.at_half_close) ExpectError(stream.Wait(kBadJob), bad);
  const grpc::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  ExpectNextRequestSucceeds();
}

INSTANTIATE_TEST_SUITE_P(Table, BadJobTest, testing::ValuesIn(BadJobs()),
                         [](const auto& info) { return info.param.name; });

class BadTransferTest : public BadInputTest, public testing::WithParamInterface<BadTransfer> {};

TEST_P(BadTransferTest, FailsWithItsSentence) {
  const BadTransfer& bad = GetParam();
  StreamClient stream(*stub_);
  stream.Header(kGoodJob, world_.good);
  const grpc::Status status = bad.call(*stub_);
  EXPECT_EQ(status.error_code(), bad.code) << status.error_message();
  for (const std::string& part : bad.sentence) EXPECT_THAT(status.error_message(), HasSubstr(part));
  stream.Payload(kGoodJob, v1::OPERAND_ROLE_A, world_.operands.a);
  stream.Payload(kGoodJob, v1::OPERAND_ROLE_B, world_.operands.b);
  ExpectGood(stream.Wait(kGoodJob));
  stream.HalfClose();
  EXPECT_TRUE(stream.Finish().ok());
}

INSTANTIATE_TEST_SUITE_P(Table, BadTransferTest, testing::ValuesIn(BadTransfers()),
                         [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(Benchmarks, BadTransferTest, testing::ValuesIn(BadBenchmarks()),
                         [](const auto& info) { return info.param.name; });

TEST_F(BadInputTest, ADuplicateIdIsRefusedAndTheFirstJobGoesOn) {
  StreamClient stream(*stub_);
  stream.Header(kGoodJob, world_.good);
  stream.Header(kGoodJob, world_.good);
  const JobOutcome refused = stream.Wait(kGoodJob);
  EXPECT_EQ(refused.code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_THAT(refused.error->message(), HasSubstr("a job 1 is alive on this stream"));
  stream.Payload(kGoodJob, v1::OPERAND_ROLE_A, world_.operands.a);
  stream.Payload(kGoodJob, v1::OPERAND_ROLE_B, world_.operands.b);
  ExpectGood(stream.Wait(kGoodJob));
  stream.HalfClose();
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(BadInputTest, OneJobTooManyOnAStream) {
  StreamClient stream(*stub_);
  for (int i = 0; i < 17; ++i) stream.Header(100 + i, world_.good);
  const JobOutcome refused = stream.Wait(116);
  EXPECT_EQ(refused.code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error->message(), HasSubstr("--max-jobs-per-stream"));
  for (int i = 0; i < 16; ++i) {
    stream.Payload(100 + i, v1::OPERAND_ROLE_A, world_.operands.a);
    stream.Payload(100 + i, v1::OPERAND_ROLE_B, world_.operands.b);
  }
  for (int i = 0; i < 16; ++i) ExpectGood(stream.Wait(100 + i));
  stream.HalfClose();
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(BadInputTest, ChunksOfAJobThatFailedAreDroppedWithoutAnotherError) {
  StreamClient stream(*stub_);
  stream.Header(kBadJob, v1::Product());
  for (int i = 0; i < 20; ++i) stream.Chunk(kBadJob, v1::OPERAND_ROLE_A, i * 4, "0123");
  SendGood(stream, kGoodJob);
  ExpectGood(stream.Wait(kGoodJob));
  EXPECT_EQ(stream.Wait(kBadJob).code(), grpc::StatusCode::INVALID_ARGUMENT);
  stream.HalfClose();
  EXPECT_FALSE(stream.ReadOne()) << "one error for one job";
  EXPECT_TRUE(stream.Finish().ok());
}

std::string HeaderBytes(uint64_t job_id, const v1::Product& product) {
  v1::MultiplyRequest request;
  request.mutable_header()->set_job_id(job_id);
  *request.mutable_header()->mutable_product() = product;
  return request.SerializeAsString();
}

TEST_F(BadInputTest, RandomBytesEndTheStreamOnceItsOtherJobsHave) {
  v1::Product product;
  *product.mutable_a() = DataOperand(world_.operands.a);
  *product.mutable_b() = DataOperand(world_.operands.b);
  RawCall call(channel_, "/gemm.v1.GemmService/Multiply");
  ASSERT_TRUE(call.Write(HeaderBytes(kGoodJob, product)));
  ASSERT_TRUE(call.Write("\xde\xad\xbe\xef\xff\xff"));
  JobOutcome outcome;
  std::string bytes;
  while (!outcome.ended() && call.Read(bytes)) {
    v1::MultiplyResponse response;
    ASSERT_TRUE(response.ParseFromString(bytes));
    if (response.has_chunk()) outcome.data += response.chunk().data();
    if (response.has_result()) outcome.result = response.result();
    if (response.has_error()) outcome.error = response.error();
  }
  ExpectGood(outcome);
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(),
              HasSubstr("message 1 of the stream is not a MultiplyRequest: its 6 bytes"));
  ExpectNextRequestSucceeds();
}

// Bad input has no effect but its error.
bool IsServersOwn(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::DATA_LOSS:
    case grpc::StatusCode::INTERNAL:
      return true;
    default:
      return false;
  }
}

// Whether protobuf takes the bytes for the method's request.
bool IsRequestOf(const std::string& method, const std::string& bytes) {
  return NewRequestOf(method)->ParseFromString(bytes);
}

// gRPC itself reads the messages of these, and answers UNIMPLEMENTED to bytes that are none.
bool IsUnary(const std::string& method) {
  const google::protobuf::MethodDescriptor& described = MethodNamed(method);
  return !described.client_streaming() && !described.server_streaming();
}

TEST_F(BadInputTest, RandomBytesOfEveryLength) {
  std::mt19937 random(1);
  for (const std::string& method : MethodNames()) {
    for (int length = 1; length < 60; ++length) {
      std::string bytes(length, '\0');
      for (char& byte : bytes) byte = static_cast<char>(random());
      RawCall call(channel_, absl::StrCat("/gemm.v1.GemmService/", method));
      call.Write(bytes);
      call.WritesDone();
      // The server answers each. Bytes that are no message get that error; bytes that happen to be
      // one get success or another error of the caller. It neither loses the call nor calls the
      // mistake its own.
      const grpc::Status status = call.Finish();
      if (IsRequestOf(method, bytes)) {
        EXPECT_FALSE(IsServersOwn(status.error_code()))
            << method << " of " << length << " bytes: " << status.error_code() << ", "
            << status.error_message();
      } else {
        EXPECT_EQ(status.error_code(), IsUnary(method) ? grpc::StatusCode::UNIMPLEMENTED
                                                       : grpc::StatusCode::INVALID_ARGUMENT)
            << method << " of " << length << " bytes: " << status.error_message();
      }
    }
  }
  ExpectNextRequestSucceeds();
}

TEST_F(BadInputTest, MessagesFarOverTheLimitEndOnlyTheirOwnCall) {
  StreamClient stream(*stub_);
  stream.Header(kBadJob, world_.good);
  stream.Chunk(kBadJob, v1::OPERAND_ROLE_A, 0, std::string(4 * kMiB, 'x'));
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectNextRequestSucceeds();
}

}  // namespace
}  // namespace gemmd
