// MultiplyUnary: one message there, one back.
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using gemm::DType;
using ::testing::HasSubstr;

class UnaryTest : public RpcTest {
 protected:
  explicit UnaryTest(const ServerOptions& options = SmallServer()) : RpcTest(options) {}

  grpc::Status Call(const v1::Product& product) {
    grpc::ClientContext context;
    v1::MultiplyUnaryRequest request;
    *request.mutable_product() = product;
    response_.Clear();
    return stub_->MultiplyUnary(&context, request, &response_);
  }

  v1::Product DataProduct() {
    v1::Product product;
    *product.mutable_a() = DataOperand(operands_.a);
    *product.mutable_b() = DataOperand(operands_.b);
    return product;
  }

  void ExpectRight(const v1::Product& product) {
    const grpc::Status status = Call(product);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(response_.data().size(), result_.dense_bytes());
    EXPECT_LE(WorstError(product, operands_, {result_, response_.data()}), 1);
  }

  void ExpectError(const v1::Product& product, grpc::StatusCode code, const char* sentence) {
    const grpc::Status status = Call(product);
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(sentence));
    ExpectHolds(before_);
    ExpectRight(DataProduct());
  }

  const Shape result_ = {64, 48, DType::kF32};
  const HostProduct operands_ = {.a = RandomMatrix({64, 32, DType::kF32}, 1),
                                 .b = RandomMatrix({32, 48, DType::kF32}, 2)};
  v1::MultiplyUnaryResponse response_;
};

TEST_F(UnaryTest, EverySource) {
  ExpectRight(DataProduct());
  EXPECT_EQ(response_.report().kernel(), "host_openblas");
  EXPECT_EQ(response_.report().m(), 64);
  v1::Product product = DataProduct();
  *product.mutable_a() = GeneratedOperand(operands_.a.shape, 1);
  ExpectRight(product);
  const Held before = HeldNow();
  const std::string id = Put(operands_.b, "b");
  *product.mutable_b() = ResidentOperand(id);
  ExpectRight(product);
  Delete(id);
  ExpectHolds(before);
}

TEST_F(UnaryTest, AProductIsCheckedWhereTheRequestAsksForIt) {
  v1::Product product = DataProduct();
  ExpectRight(product);
  EXPECT_FALSE(response_.report().has_check());
  product.set_verify(v1::VERIFY_ALWAYS);
  ExpectRight(product);
  const v1::ResultCheck& check = response_.report().check();
  EXPECT_EQ(check.result(), v1::CHECK_RESULT_PASSED);
  EXPECT_GT(check.of_bound(), 0);
  EXPECT_LE(check.of_bound(), 1);
  EXPECT_TRUE(response_.report().phases().has_check());
  product.set_activation(v1::ACTIVATION_GELU);
  ExpectRight(product);
  EXPECT_TRUE(response_.report().check().before_activation());
  ExpectHolds(before_);
}

class UnaryAlwaysCheckedTest : public UnaryTest {
 protected:
  UnaryAlwaysCheckedTest() : UnaryTest(AlwaysChecked()) {}
  static ServerOptions AlwaysChecked() {
    ServerOptions options = SmallServer();
    options.engine.verify = Verify::kAlways;
    return options;
  }
};

TEST_F(UnaryAlwaysCheckedTest, ThePolicyCountsWhereItIsStricter) {
  v1::Product product = DataProduct();
  for (const v1::Verify verify : {v1::VERIFY_UNSPECIFIED, v1::VERIFY_OFF, v1::VERIFY_SAMPLED}) {
    product.set_verify(verify);
    ExpectRight(product);
    EXPECT_EQ(response_.report().check().result(), v1::CHECK_RESULT_PASSED);
  }
  product.set_alpha(0);
  const grpc::Status status = Call(product);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response_.report().check().result(), v1::CHECK_RESULT_UNSPECIFIED);
  EXPECT_THAT(response_.report().check().not_checked(), HasSubstr("alpha is 0"));
}

class UnaryDevicesTest : public RpcTest {
 protected:
  UnaryDevicesTest() : RpcTest(TwoDevices()) {}
  static ServerOptions TwoDevices() {
    ServerOptions options = SmallServer();
    options.engine.devices = "host:2";
    return options;
  }
};

// Two matrices without a named device land on two devices, and are multiplied.
TEST_F(UnaryDevicesTest, OperandsOnBothAreMultipliedAndTheReportSaysHow) {
  const HostProduct operands = {.a = RandomMatrix({64, 33, DType::kF32}, 1),
                                .b = RandomMatrix({33, 48, DType::kF32}, 2)};
  v1::MultiplyUnaryRequest request;
  v1::Product& product = *request.mutable_product();
  const std::string a = Put(operands.a, "a"), b = Put(operands.b, "b");
  *product.mutable_a() = ResidentOperand(a);
  *product.mutable_b() = ResidentOperand(b);
  for (const bool reused : {false, true}) {
    grpc::ClientContext context;
    v1::MultiplyUnaryResponse response;
    const grpc::Status status = stub_->MultiplyUnary(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_LE(WorstError(product, operands, {{64, 48, DType::kF32}, response.data()}), 1);
    EXPECT_EQ(response.report().device(), "host:0");
    ASSERT_EQ(response.report().copies_size(), 1);
    const v1::OperandCopy& copy = response.report().copies(0);
    EXPECT_EQ(copy.operand(), v1::OPERAND_ROLE_B);
    EXPECT_EQ(copy.from_device(), "host:1");
    EXPECT_EQ(copy.bytes(), 33u * 48 * 4);
    EXPECT_EQ(copy.reused(), reused);
    EXPECT_FALSE(copy.peer_to_peer());
    EXPECT_TRUE(response.report().phases().has_device_to_device());
  }
  Delete(a);
  Delete(b);
}

TEST_F(UnaryTest, KeepsTheResultOrBoth) {
  v1::Product product = DataProduct();
  product.mutable_result()->mutable_keep();
  ASSERT_TRUE(Call(product).ok());
  EXPECT_EQ(response_.data(), "");
  Delete(response_.kept().id());
  product.mutable_result()->set_stream(true);
  ExpectRight(product);
  Delete(response_.kept().id());
}

TEST_F(UnaryTest, ResultOverTheMessageLimit) {
  // 1024 x 1024 f32 are 4 MiB; the test's limit is 1 MiB.
  v1::Product product;
  *product.mutable_a() = GeneratedOperand({1024, 8, DType::kF32}, 1);
  *product.mutable_b() = GeneratedOperand({8, 1024, DType::kF32}, 2);
  ExpectError(product, grpc::StatusCode::INVALID_ARGUMENT, "4194304 bytes of result");
}

TEST_F(UnaryTest, ResultOverTheMessageLimitFromResidentOperands) {
  const std::string a = Put(RandomMatrix({1024, 8, DType::kF32}, 1));
  const std::string b = Put(RandomMatrix({8, 1024, DType::kF32}, 2));
  v1::Product product;
  *product.mutable_a() = ResidentOperand(a);
  *product.mutable_b() = ResidentOperand(b);
  const grpc::Status status = Call(product);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("product.result.stream: 4194304 bytes of result"));
  Delete(a);
  Delete(b);
}

TEST_F(UnaryTest, AnFp8ProductCountsAsTheF16ThatItIs) {
  // 800 x 800: 640,000 bytes in fp8, 1,280,000 in f16; the limit is 1 MiB.
  v1::Product product;
  *product.mutable_a() = GeneratedOperand({800, 8, DType::kE4M3}, 1);
  *product.mutable_b() = GeneratedOperand({8, 800, DType::kE4M3}, 2);
  ExpectError(product, grpc::StatusCode::INVALID_ARGUMENT, "1280000 bytes of result");
}

// A message that has little more room than a staging block.
class TightUnaryTest : public UnaryTest {
 protected:
  static ServerOptions Tight() {
    ServerOptions options = SmallServer();
    options.engine.staging_block_bytes = 128 * kKiB;
    options.rpc.max_message_bytes = 129 * kKiB;
    return options;
  }
  TightUnaryTest() : UnaryTest(Tight()) {}
};

TEST_F(TightUnaryTest, AResultThatDoesNotFitIsNeverOk) {
  // The first block of the result fits the message, but not with the report.
  const std::string a = Put(RandomMatrix({184, 2, DType::kF32}, 1));
  const std::string b = Put(RandomMatrix({2, 184, DType::kF32}, 2));
  v1::Product product;
  *product.mutable_a() = ResidentOperand(a);
  *product.mutable_b() = ResidentOperand(b);
  int ok = 0;
  constexpr int kCalls = 1000;
  for (int i = 0; i < kCalls; ++i) ok += Call(product).ok() ? 1 : 0;
  EXPECT_EQ(ok, 0) << "of " << kCalls;
  Delete(a);
  Delete(b);
}

TEST_F(UnaryTest, BadInput) {
  v1::Product product = DataProduct();
  product.mutable_a()->mutable_payload();
  ExpectError(product, grpc::StatusCode::INVALID_ARGUMENT, "product.a.payload");
  product = DataProduct();
  product.mutable_b()->set_data("short");
  ExpectError(product, grpc::StatusCode::INVALID_ARGUMENT, "product.b.data: 5 bytes");
  product = DataProduct();
  product.mutable_kernel()->set_name("host_openblsa");
  ExpectError(product, grpc::StatusCode::NOT_FOUND, "host_openblas");
  product = DataProduct();
  product.mutable_timeout()->set_nanos(100);
  ExpectError(product, grpc::StatusCode::INVALID_ARGUMENT, "product.timeout");
}

TEST_F(UnaryTest, NoProduct) {
  grpc::ClientContext context;
  const grpc::Status status = stub_->MultiplyUnary(&context, {}, &response_);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("product: not set"));
}

TEST_F(UnaryTest, ManyCallsAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this] {
      const v1::Product product = DataProduct();
      for (int round = 0; round < 50; ++round) {
        grpc::ClientContext context;
        v1::MultiplyUnaryRequest request;
        v1::MultiplyUnaryResponse response;
        *request.mutable_product() = product;
        const grpc::Status status = stub_->MultiplyUnary(&context, request, &response);
        ASSERT_TRUE(status.ok()) << status.error_message();
        ASSERT_LE(WorstError(product, operands_, {result_, response.data()}), 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gemmd
