// How calls end before their time: cancelled, too late, or with the server.
#include <chrono>
#include <future>
#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/engine/device/device.h"
#include "tests/rpc/raw_client.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using gemm::DType;
using ::testing::HasSubstr;

ServerOptions RoomyServer() {
  ServerOptions options = SmallServer();
  options.engine.device_memory_bytes = 256 * kMiB;
  return options;
}

class EndingTest : public RpcTest {
 protected:
  EndingTest() : RpcTest(RoomyServer()) {
    *good_.mutable_a() = PayloadOperand(operands_.a);
    *good_.mutable_b() = PayloadOperand(operands_.b);
  }

  // Takes some tenths of a second, with operands drawn on the server.
  static v1::Product LongProduct() {
    v1::Product product;
    *product.mutable_a() = GeneratedOperand({700, 700, DType::kF64}, 1);
    *product.mutable_b() = GeneratedOperand({700, 700, DType::kF64}, 2);
    product.mutable_kernel()->set_name("host_reference");
    return product;
  }

  void ExpectGood(const JobOutcome& outcome) {
    ASSERT_TRUE(outcome.result.has_value())
        << (outcome.error.has_value() ? outcome.error->message() : "no answer");
    EXPECT_LE(WorstError(good_, operands_, {{300, 200}, outcome.data}), 1);
  }

  void SendPayload(StreamClient& stream, uint64_t job_id) {
    stream.Payload(job_id, v1::OPERAND_ROLE_A, operands_.a);
    stream.Payload(job_id, v1::OPERAND_ROLE_B, operands_.b);
  }

  // Waits until the server has taken up `jobs` jobs.
  void AwaitJobs(int64_t jobs) {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (HeldNow().jobs != jobs && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
    ASSERT_EQ(HeldNow().jobs, jobs);
  }

  const HostProduct operands_ = {.a = RandomMatrix({300, 400, DType::kF32}, 1),
                                 .b = RandomMatrix({400, 200, DType::kF32}, 2)};
  v1::Product good_;
};

TEST_F(EndingTest, CancelledInMidPayload) {
  StreamClient stream(*stub_);
  stream.Header(1, good_);
  stream.Payload(1, v1::OPERAND_ROLE_A, operands_.a);
  AwaitJobs(1);
  stream.context().TryCancel();
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::CANCELLED);
  ExpectHolds(before_);
  ExpectGood(Multiply(good_, operands_));
}

TEST_F(EndingTest, CancelledWhileRunningAndInTheQueue) {
  StreamClient stream(*stub_);
  for (int i = 0; i < 6; ++i) stream.Header(i, LongProduct());
  AwaitJobs(6);
  stream.context().TryCancel();
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::CANCELLED);
  ExpectHolds(before_);
}

TEST_F(EndingTest, CancelledWhileTheResultComes) {
  v1::Product product;
  *product.mutable_a() = GeneratedOperand({1500, 10, DType::kF32}, 1);
  *product.mutable_b() = GeneratedOperand({10, 1500, DType::kF32}, 2);
  StreamClient stream(*stub_);
  stream.Header(1, product);
  ASSERT_TRUE(stream.ReadOne());
  stream.context().TryCancel();
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::CANCELLED);
  ExpectHolds(before_);
}

TEST_F(EndingTest, OneJobCancelledWhileAnotherRuns) {
  StreamClient stream(*stub_);
  stream.Header(1, LongProduct());
  stream.Header(2, good_);
  stream.Cancel(1);
  EXPECT_EQ(stream.Wait(1).code(), grpc::StatusCode::CANCELLED);
  SendPayload(stream, 2);
  ExpectGood(stream.Wait(2));
  stream.Cancel(1);  // it has ended: nothing happens
  stream.HalfClose();
  EXPECT_FALSE(stream.ReadOne());
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(EndingTest, TheCallsDeadlinePassesInTransfer) {
  StreamClient stream(*stub_, absl::Milliseconds(60));
  stream.Header(1, good_);
  stream.Payload(1, v1::OPERAND_ROLE_A, operands_.a);
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  ExpectHolds(before_);
}

TEST_F(EndingTest, AJobsTimeoutPassesInTheQueue) {
  StreamClient stream(*stub_);
  // As many as there are streams on the device.
  stream.Header(1, LongProduct());
  stream.Header(2, LongProduct());
  AwaitJobs(2);
  v1::Product late = LongProduct();
  late.mutable_timeout()->set_nanos(5'000'000);
  stream.Header(3, late);
  const JobOutcome outcome = stream.Wait(3);
  EXPECT_EQ(outcome.code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(outcome.error->message(), HasSubstr("deadline passed"));
  EXPECT_TRUE(stream.Wait(1).result.has_value());
  EXPECT_TRUE(stream.Wait(2).result.has_value());
  stream.HalfClose();
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(EndingTest, AJobsTimeoutPassesBeforeItIsAdmitted) {
  v1::Product late = LongProduct();
  late.mutable_timeout()->set_nanos(1'000);
  const JobOutcome outcome = Multiply(late, {});
  EXPECT_EQ(outcome.code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(EndingTest, HalfCloseLetsRunningJobsFinish) {
  StreamClient stream(*stub_);
  stream.Header(1, LongProduct());
  stream.Header(2, good_);
  SendPayload(stream, 2);
  stream.HalfClose();
  ExpectGood(stream.Wait(2));
  EXPECT_TRUE(stream.Wait(1).result.has_value());
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(EndingTest, AClientThatGoesAwayLeavesNothing) {
  auto held = std::make_unique<StreamClient>(*stub_);
  held->Header(1, good_);
  held->Payload(1, v1::OPERAND_ROLE_A, operands_.a);
  held->Header(2, LongProduct());
  AwaitJobs(2);
  held.reset();  // the call is cancelled with its context
  ExpectHolds(before_);
}

TEST_F(EndingTest, UnaryCallIsCancelled) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Milliseconds(20)));
  v1::MultiplyUnaryRequest request;
  v1::MultiplyUnaryResponse response;
  *request.mutable_product() = LongProduct();
  v1::Product& product = *request.mutable_product();
  *product.mutable_a() = GeneratedOperand({300, 4000, DType::kF64}, 1);
  *product.mutable_b() = GeneratedOperand({4000, 300, DType::kF64}, 2);
  const grpc::Status status = stub_->MultiplyUnary(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  ExpectHolds(before_);
}

// The server's own end.
class DrainTest : public EndingTest {
 protected:
  void TearDown() override {}

  std::future<bool> StopSoon(absl::Duration timeout) {
    return std::async(std::launch::async, [this, timeout] { return server_->Stop(timeout); });
  }
};

TEST_F(DrainTest, IdleStreamsAreToldAndTheServerStopsAtOnce) {
  StreamClient stream(*stub_);
  stream.Header(1, good_);
  SendPayload(stream, 1);
  ExpectGood(stream.Wait(1));
  RawCall watch(channel_, "/grpc.health.v1.Health/Watch");
  std::string health;
  watch.Write(HealthRequest("gemm.v1.GemmService"));
  watch.WritesDone();
  ASSERT_TRUE(watch.Read(health));
  EXPECT_EQ(ParseHealth(health), Serving::kServing);
  const absl::Time begin = absl::Now();
  std::future<bool> stopped = StopSoon(absl::Seconds(30));
  ASSERT_TRUE(watch.Read(health));
  EXPECT_EQ(ParseHealth(health), Serving::kNotServing);
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("draining"));
  EXPECT_TRUE(stopped.get());
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
}

TEST_F(DrainTest, WhatRunsEndsAndNothingNewBegins) {
  StreamClient stream(*stub_);
  stream.Header(1, good_);
  stream.Payload(1, v1::OPERAND_ROLE_A, operands_.a);
  AwaitJobs(1);
  std::future<bool> stopped = StopSoon(absl::Seconds(30));
  while (server_->engine().Stats().jobs.used > 0) {
    stream.Header(2, LongProduct());
    if (stream.Wait(2).code() == grpc::StatusCode::UNAVAILABLE) break;
  }
  stream.Payload(1, v1::OPERAND_ROLE_B, operands_.b);
  ExpectGood(stream.Wait(1));
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(stopped.get());
}

TEST_F(DrainTest, WhatDoesNotEndInTimeIsCancelled) {
  StreamClient stream(*stub_);
  stream.Header(1, good_);
  // Until the job has begun, as messages are taken in order.
  stream.Cancel(99);
  EXPECT_EQ(stream.Wait(99).code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_FALSE(StopSoon(absl::Milliseconds(50)).get());
  EXPECT_EQ(stream.Wait(1).code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(DrainTest, AClientThatDoesNotReadCannotHoldTheServer) {
  v1::Product product;
  *product.mutable_a() = GeneratedOperand({1500, 10, DType::kF32}, 1);
  *product.mutable_b() = GeneratedOperand({10, 1500, DType::kF32}, 2);
  StreamClient stream(*stub_);
  stream.Header(1, product);
  AwaitJobs(1);
  const absl::Time begin = absl::Now();
  StopSoon(absl::Milliseconds(50)).get();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(15));
  EXPECT_FALSE(stream.Finish().ok());
}

TEST_F(DrainTest, TheEngineStaysWhileTheTransportHoldsResults) {
  StagingBlock held = server_->engine().devices()[0]->download_staging().TryAcquire();
  ASSERT_TRUE(held);
  std::future<bool> stopped = StopSoon(absl::Milliseconds(50));
  EXPECT_EQ(stopped.wait_for(std::chrono::seconds(3)), std::future_status::timeout);
  held.Reset();
  EXPECT_TRUE(stopped.get());
}

TEST_F(DrainTest, AnUploadWithoutHeaderEnds) {
  grpc::ClientContext context;
  v1::PutMatrixResponse response;
  auto call = stub_->PutMatrix(&context, &response);
  // The call must have reached the server: another one on its connection has.
  ExpectGood(Multiply(good_, operands_));
  EXPECT_TRUE(StopSoon(absl::Seconds(30)).get());
  const grpc::Status status = call->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  // The drain itself ended it, not the end of the drain's time.
  EXPECT_THAT(status.error_message(), HasSubstr("upload elsewhere"));
}

}  // namespace
}  // namespace gemmd
