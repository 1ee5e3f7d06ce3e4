// ListTraffic: the products that a server has seen, and has no entry of its tables for.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using ::testing::AllOf;
using ::testing::HasSubstr;

class TrafficTest : public RpcTest {
 protected:
  grpc::Status List(int limit, v1::ListTrafficResponse& response) {
    grpc::ClientContext context;
    v1::ListTrafficRequest request;
    request.set_limit(limit);
    return stub_->ListTraffic(&context, request, &response);
  }

  // m x 12 times 12 x 8, with B transposed.
  void Multiply(int64_t m) {
    v1::MultiplyUnaryRequest request;
    v1::Product& product = *request.mutable_product();
    *product.mutable_a() = GeneratedOperand({m, 12, gemm::DType::kF16}, 1);
    *product.mutable_b() = GeneratedOperand({8, 12, gemm::DType::kF16}, 2);
    product.set_transpose_b(true);
    product.set_activation(v1::ACTIVATION_RELU);
    grpc::ClientContext context;
    v1::MultiplyUnaryResponse response;
    const grpc::Status status = stub_->MultiplyUnary(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
};

TEST_F(TrafficTest, SaysWhatTheProductsWere) {
  v1::ListTrafficResponse response;
  ASSERT_TRUE(List(0, response).ok());
  EXPECT_EQ(response.entries_size(), 0);
  Multiply(16);
  Multiply(16);
  ASSERT_TRUE(List(0, response).ok());
  ASSERT_EQ(response.entries_size(), 1);
  const v1::TrafficEntry& entry = response.entries(0);
  EXPECT_EQ(entry.size().m(), 16);
  EXPECT_EQ(entry.size().n(), 8);
  EXPECT_EQ(entry.size().k(), 12);
  EXPECT_EQ(entry.types().a(), v1::DATA_TYPE_F16);
  EXPECT_EQ(entry.types().output(), v1::DATA_TYPE_F16);
  EXPECT_EQ(entry.types().compute(), v1::COMPUTE_MODE_F32);
  EXPECT_FALSE(entry.layout().transpose_a());
  EXPECT_TRUE(entry.layout().transpose_b());
  EXPECT_TRUE(entry.epilogue());
  EXPECT_EQ(entry.count(), 2);
  EXPECT_GT(entry.seconds(), 0);
  EXPECT_EQ(response.dropped(), 0);
}

TEST_F(TrafficTest, TheLimitIsBoundedAndHolds) {
  for (int m = 1; m <= 120; ++m) Multiply(m);
  v1::ListTrafficResponse response;
  ASSERT_TRUE(List(0, response).ok());
  EXPECT_EQ(response.entries_size(), 100);
  for (int i = 1; i < response.entries_size(); ++i) {
    EXPECT_LE(response.entries(i).seconds(), response.entries(i - 1).seconds());
  }
  ASSERT_TRUE(List(3, response).ok());
  EXPECT_EQ(response.entries_size(), 3);
  ASSERT_TRUE(List(1024, response).ok());
  EXPECT_EQ(response.entries_size(), 120);
  for (const int limit : {-1, 1025}) {
    const grpc::Status status = List(limit, response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << limit;
    EXPECT_THAT(status.error_message(),
                AllOf(HasSubstr("limit: " + std::to_string(limit)), HasSubstr("1 to 1024")));
  }
}

}  // namespace
}  // namespace gemmd
