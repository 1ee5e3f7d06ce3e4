// A product in blocks of rows, where the server refuses it or breaks the contract in mid-course.

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "gemmd/client/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_server.h"

namespace gemmd::client {
namespace {

using ::testing::HasSubstr;

// 1,000 rows: eight blocks on two channels.
class RowBlockFaultsTest : public ::testing::Test {
 protected:
  static constexpr int64_t kRows = 1000, kExtent = 20;

  RowBlockFaultsTest() : a_(kRows * kExtent, 1.0f), b_(kExtent * kExtent, 2.0f) {
    server_.faults().row_blocks = true;
    auto connected = Client::Connect({.address = server_.address(),
                                      .channels = 2,
                                      .chunk_bytes = 4 << 10,
                                      .unary_threshold_bytes = 0,
                                      .stripe_threshold_bytes = 32 << 10});
    EXPECT_TRUE(connected.ok()) << connected.status();
    client_ = *std::move(connected);
  }

  Product Tall() const {
    return {.a = ViewOf({.rows = kRows, .cols = kExtent}, a_.data()),
            .b = ViewOf({.rows = kExtent, .cols = kExtent}, b_.data())};
  }
  absl::StatusOr<ProductResult> Run(Transport transport = Transport::kRowBlocks) {
    return client_->Multiply(Tall(), {.timeout = absl::Seconds(60), .transport = transport});
  }
  // The product, right, over this transport.
  void ExpectRight(const absl::StatusOr<ProductResult>& result, Transport transport) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->transport, transport);
    EXPECT_THAT(result->matrix.ToDoubles(), ::testing::Each(2.0 * kExtent));
    EXPECT_TRUE(server_.MatricesBecome(0));
  }

  std::vector<float> a_, b_;
  FakeServer server_;
  std::unique_ptr<Client> client_;
};

TEST_F(RowBlockFaultsTest, EachStreamTakesSeveralBlocksAndFewAtATime) {
  const auto result = Run();
  ExpectRight(result, Transport::kRowBlocks);
  EXPECT_EQ(result->report.m(), kRows);
  EXPECT_EQ(server_.calls("Multiply"), 2);
  EXPECT_EQ(server_.calls("RankKernels"), 1);
  EXPECT_EQ(server_.calls("GetMatrix") + server_.calls("MultiplyUnary"), 0);
  EXPECT_GE(server_.most_jobs(), 4);
  EXPECT_LE(server_.most_live(), 3);
}

TEST_F(RowBlockFaultsTest, LiveJobsAreNoMoreThanTheServerTakes) {
  server_.faults().describe = [](::gemm::v1::GetServerInfoResponse* info) {
    info->mutable_limits()->set_max_jobs(2);
  };
  client_ = *Client::Connect({.address = server_.address(), .channels = 2, .chunk_bytes = 4 << 10});
  ExpectRight(Run(), Transport::kRowBlocks);
  EXPECT_EQ(server_.most_live(), 1);
}

TEST_F(RowBlockFaultsTest, AServerThatPromisesNothingGetsItStriped) {
  server_.faults().row_blocks = false;
  for (const Transport transport : {Transport::kAuto, Transport::kRowBlocks}) {
    ExpectRight(Run(transport), Transport::kStriped);
  }
}

TEST_F(RowBlockFaultsTest, BlocksOfDifferentKernelsAreNoProduct) {
  server_.faults().other_kernel = true;
  for (const Transport transport : {Transport::kAuto, Transport::kRowBlocks}) {
    ExpectRight(Run(transport), Transport::kStriped);
  }
}

// The first attempt brings all of D before it fails; the second one sends A again.
TEST_F(RowBlockFaultsTest, TheResultMayGoWhereAnOperandLies) {
  server_.faults().other_kernel = true;
  Product product = Tall();
  product.result.into = MutableViewOf({.rows = kRows, .cols = kExtent}, a_.data());
  const auto result = client_->Multiply(
      product, {.timeout = absl::Seconds(60), .transport = Transport::kRowBlocks});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->transport, Transport::kStriped);
  EXPECT_THAT(a_, ::testing::Each(2.0f * kExtent));
  EXPECT_TRUE(result->matrix.empty());
}

TEST_F(RowBlockFaultsTest, AnOperandIsAsBeforeWhereAResultForItsMemoryDoesNotComeWhole) {
  server_.faults().lose_last_chunk = true;
  Product product = Tall();
  product.result.into = MutableViewOf({.rows = kRows, .cols = kExtent}, a_.data());
  for (const Transport transport :
       {Transport::kStream, Transport::kStriped, Transport::kRowBlocks}) {
    const auto result =
        client_->Multiply(product, {.timeout = absl::Seconds(60), .transport = transport});
    EXPECT_TRUE(absl::IsInternal(result.status())) << result.status();
    EXPECT_THAT(a_, ::testing::Each(1.0f));
  }
}

TEST_F(RowBlockFaultsTest, ARefusedBlockSendsTheProductWhole) {
  std::atomic<int> streams{0};
  server_.faults().refuse = [&](const std::string& method) {
    return method == "Multiply" && streams++ == 0
               ? grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "row_block is set, but")
               : grpc::Status::OK;
  };
  ExpectRight(Run(), Transport::kStriped);
}

// As where the device that has B is lost: what is tried again brings B anew.
TEST_F(RowBlockFaultsTest, WhatIsLostInMidCourseIsTriedAgain) {
  std::atomic<int> streams{0};
  server_.faults().refuse = [&](const std::string& method) {
    return method == "Multiply" && streams++ == 1
               ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "the device was lost")
               : grpc::Status::OK;
  };
  ExpectRight(Run(), Transport::kRowBlocks);
  EXPECT_EQ(server_.calls("RankKernels"), 2);
}

TEST_F(RowBlockFaultsTest, WithoutRoomItGoesAsOneStreamWhereTheLibraryChose) {
  server_.faults().refuse = [](const std::string& method) {
    return method == "PutMatrix"
               ? grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the store is full")
               : grpc::Status::OK;
  };
  ExpectRight(Run(Transport::kAuto), Transport::kStream);
  EXPECT_TRUE(absl::IsResourceExhausted(Run(Transport::kRowBlocks).status()));
}

TEST_F(RowBlockFaultsTest, BrokenContractIsAnInternalErrorAndLeavesNothing) {
  const auto message = [&] {
    const absl::Status status = Run().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_TRUE(server_.MatricesBecome(0));
    return std::string(status.message());
  };
  Faults& faults = server_.faults();
  faults.wrong_offset = true;
  EXPECT_THAT(message(), HasSubstr("the server sent bytes 1 to"));
  faults.wrong_offset = false;
  faults.lose_last_chunk = true;
  EXPECT_THAT(message(), HasSubstr("are missing"));
  faults.lose_last_chunk = false;
  faults.wrong_job = true;
  EXPECT_THAT(message(), HasSubstr("which the stream does not have"));
  faults.wrong_job = false;
  faults.no_result = true;
  client_ = *Client::Connect({.address = server_.address(), .channels = 8, .chunk_bytes = 4 << 10});
  EXPECT_THAT(message(), HasSubstr("without a result"));
}

TEST_F(RowBlockFaultsTest, AFailedDeletionFailsTheProduct) {
  server_.faults().refuse = [](const std::string& method) {
    return method == "DeleteMatrix" ? grpc::Status(grpc::StatusCode::DATA_LOSS, "wet")
                                    : grpc::Status::OK;
  };
  EXPECT_EQ(Run().status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace gemmd::client
