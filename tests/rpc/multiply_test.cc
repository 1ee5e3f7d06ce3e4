// Products over Multiply: every type, source, layout and epilogue against the
// oracle, and how jobs share a stream.
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

using MultiplyTest = RpcTest;

struct Case {
  DType type = DType::kF32;
  int64_t m = 37, n = 29, k = 41;
  bool transpose_a = false, transpose_b = false;
  bool a_column_major = false, b_column_major = false, d_column_major = false;
};

Shape Stored(int64_t rows, int64_t cols, bool transposed, bool column_major, DType type) {
  return transposed ? Shape{cols, rows, type, column_major} : Shape{rows, cols, type, column_major};
}

HostProduct Operands(const Case& c) {
  return {.a = RandomMatrix(Stored(c.m, c.k, c.transpose_a, c.a_column_major, c.type), 1),
          .b = RandomMatrix(Stored(c.k, c.n, c.transpose_b, c.b_column_major, c.type), 2)};
}

v1::Product Payloads(const Case& c, const HostProduct& operands) {
  v1::Product product;
  *product.mutable_a() = PayloadOperand(operands.a);
  *product.mutable_b() = PayloadOperand(operands.b);
  product.set_transpose_a(c.transpose_a);
  product.set_transpose_b(c.transpose_b);
  product.set_output_layout(c.d_column_major ? v1::LAYOUT_COLUMN_MAJOR : v1::LAYOUT_ROW_MAJOR);
  return product;
}

void ExpectRight(const v1::Product& product, const HostProduct& operands, const Shape& result,
                 const JobOutcome& outcome) {
  ASSERT_TRUE(outcome.result.has_value())
      << (outcome.error.has_value() ? outcome.error->message() : "no answer");
  ASSERT_EQ(outcome.data.size(), result.dense_bytes());
  EXPECT_LE(WorstError(product, operands, {result, outcome.data}), 1);
}

TEST_F(MultiplyTest, EveryTypeTransposeAndLayout) {
  for (const DType type : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    for (int bits = 0; bits < 32; ++bits) {
      const Case c{.type = type,
                   .transpose_a = (bits & 1) != 0,
                   .transpose_b = (bits & 2) != 0,
                   .a_column_major = (bits & 4) != 0,
                   .b_column_major = (bits & 8) != 0,
                   .d_column_major = (bits & 16) != 0};
      const HostProduct operands = Operands(c);
      const v1::Product product = Payloads(c, operands);
      ExpectRight(product, operands, {c.m, c.n, type, c.d_column_major},
                  Multiply(product, operands));
    }
  }
}

TEST_F(MultiplyTest, EveryEpilogue) {
  for (const bool column_major : {false, true}) {
    for (const v1::Activation activation : {v1::ACTIVATION_NONE, v1::ACTIVATION_RELU,
                                            v1::ACTIVATION_GELU, v1::ACTIVATION_LEAKY_RELU}) {
      const Case c{.d_column_major = column_major};
      const Shape result = {c.m, c.n, c.type, column_major};
      HostProduct operands = Operands(c);
      operands.c = RandomMatrix(result, 3);
      operands.bias = RandomMatrix({1, c.n, c.type, false}, 4);
      v1::Product product = Payloads(c, operands);
      *product.mutable_c() = PayloadOperand(*operands.c);
      *product.mutable_bias() = PayloadOperand(*operands.bias);
      product.set_alpha(-1.5);
      product.set_beta(0.25);
      product.set_activation(activation);
      product.set_leaky_slope(0.2);
      ExpectRight(product, operands, result, Multiply(product, operands));
    }
  }
}

TEST_F(MultiplyTest, OtherOutputTypeAndComputeMode) {
  const Case c{.type = DType::kF16};
  const HostProduct operands = Operands(c);
  v1::Product product = Payloads(c, operands);
  product.set_output_dtype(v1::DATA_TYPE_F32);
  ExpectRight(product, operands, {c.m, c.n, DType::kF32}, Multiply(product, operands));
  product.set_output_dtype(v1::DATA_TYPE_UNSPECIFIED);
  product.set_compute(v1::COMPUTE_MODE_F16);
  ExpectRight(product, operands, {c.m, c.n, DType::kF16}, Multiply(product, operands));
}

TEST_F(MultiplyTest, EverySourceGivesTheSameProduct) {
  const Case c;
  const HostProduct operands = Operands(c);
  const Shape result = {c.m, c.n, c.type};
  const std::string b = Put(operands.b);
  const std::vector<v1::Operand> sources_of_a = {
      PayloadOperand(operands.a), DataOperand(operands.a), GeneratedOperand(operands.a.shape, 1)};
  for (const v1::Operand& a : sources_of_a) {
    v1::Product product;
    *product.mutable_a() = a;
    *product.mutable_b() = ResidentOperand(b);
    ExpectRight(product, operands, result, Multiply(product, operands));
  }
  Delete(b);
}

TEST_F(MultiplyTest, LargeOperandsComeInManyChunksAndGoInMany) {
  const Case c{.m = 700, .n = 640, .k = 513};
  const HostProduct operands = Operands(c);
  const v1::Product product = Payloads(c, operands);
  ExpectRight(product, operands, {c.m, c.n, c.type}, Multiply(product, operands));
}

TEST_F(MultiplyTest, ResultCanBeKeptAndUsedAgain) {
  const Case c;
  const HostProduct operands = Operands(c);
  v1::Product product = Payloads(c, operands);
  product.mutable_result()->mutable_keep()->set_name("kept/product-1");
  const JobOutcome outcome = Multiply(product, operands);
  ASSERT_TRUE(outcome.result.has_value());
  EXPECT_EQ(outcome.data, "") << "kept alone is not streamed";
  const v1::MatrixInfo& kept = outcome.result->kept();
  EXPECT_EQ(kept.name(), "kept/product-1");
  EXPECT_EQ(kept.bytes(), static_cast<uint64_t>(c.m * c.n * 4));
  const Shape shape = {c.m, c.n, c.type};
  EXPECT_LE(WorstError(product, operands, {shape, Get(kept.id())}), 1);
  Delete(kept.id());
}

TEST_F(MultiplyTest, ReleaseDeletesTheOperandOnceHeld) {
  const Case c;
  const HostProduct operands = Operands(c);
  v1::Product product = Payloads(c, operands);
  *product.mutable_a() = ResidentOperand(Put(operands.a, "once"));
  product.mutable_a()->mutable_matrix()->set_release(true);
  ExpectRight(product, operands, {c.m, c.n, c.type}, Multiply(product, operands));
  EXPECT_EQ(Multiply(product, operands).code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(MultiplyTest, ReportSaysWhatRanAndHowLong) {
  const Case c{.m = 300, .n = 200, .k = 100};
  const HostProduct operands = Operands(c);
  v1::Product product = Payloads(c, operands);
  product.mutable_kernel()->set_name("host_reference");
  const JobOutcome outcome = Multiply(product, operands);
  ASSERT_TRUE(outcome.result.has_value());
  const v1::ProductReport& report = outcome.result->report();
  EXPECT_EQ(report.kernel(), "host_reference");
  EXPECT_THAT(report.reason(), testing::HasSubstr("name"));
  EXPECT_EQ(report.device(), "host:0");
  EXPECT_EQ(report.m(), 300);
  EXPECT_EQ(report.n(), 200);
  EXPECT_EQ(report.k(), 100);
  EXPECT_EQ(report.result_shape().dtype(), v1::DATA_TYPE_F32);
  EXPECT_EQ(report.compute(), v1::COMPUTE_MODE_F32);
  EXPECT_GT(report.phases().kernel().nanos(), 0);
  EXPECT_GT(report.phases().receive().nanos(), 0);
  EXPECT_GT(report.phases().send().nanos(), 0);
  EXPECT_GE(report.phases().total().nanos(), report.phases().kernel().nanos());
  EXPECT_GT(report.tflops(), 0);
}

TEST_F(MultiplyTest, KernelByFamilyAndAuto) {
  const Case c;
  const HostProduct operands = Operands(c);
  v1::Product product = Payloads(c, operands);
  product.mutable_kernel()->set_family("host");
  ExpectRight(product, operands, {c.m, c.n, c.type}, Multiply(product, operands));
  product.mutable_kernel()->set_name("auto");
  ExpectRight(product, operands, {c.m, c.n, c.type}, Multiply(product, operands));
}

TEST_F(MultiplyTest, ManyJobsInterleavedOnOneStream) {
  constexpr int kJobs = 12;
  StreamClient stream(*stub_);
  std::vector<HostProduct> operands;
  std::vector<v1::Product> products;
  for (int i = 0; i < kJobs; ++i) {
    const Case c{.m = 20 + i, .n = 31, .k = 50 + 3 * i};
    operands.push_back(Operands(c));
    products.push_back(Payloads(c, operands.back()));
    stream.Header(i, products.back());
  }
  constexpr size_t kPiece = 997;
  for (size_t offset = 0;; offset += kPiece) {
    bool sent = false;
    for (int i = 0; i < kJobs; ++i) {
      for (const auto role : {v1::OPERAND_ROLE_A, v1::OPERAND_ROLE_B}) {
        const HostMatrix& matrix = role == v1::OPERAND_ROLE_A ? operands[i].a : operands[i].b;
        if (offset >= matrix.bytes.size()) continue;
        stream.Chunk(i, role, offset, matrix.bytes.substr(offset, kPiece));
        sent = true;
      }
    }
    if (!sent) break;
  }
  for (int i = kJobs - 1; i >= 0; --i) {
    ExpectRight(products[i], operands[i], {20 + i, 31, DType::kF32}, stream.Wait(i));
  }
  stream.HalfClose();
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(MultiplyTest, AnIdMayBeUsedAgainOnceItsJobHasEnded) {
  const Case c;
  const HostProduct operands = Operands(c);
  const v1::Product product = Payloads(c, operands);
  StreamClient stream(*stub_);
  for (int round = 0; round < 3; ++round) {
    stream.Header(5, product);
    stream.Payload(5, v1::OPERAND_ROLE_A, operands.a);
    stream.Payload(5, v1::OPERAND_ROLE_B, operands.b);
    ExpectRight(product, operands, {c.m, c.n, c.type}, stream.Wait(5));
  }
  stream.HalfClose();
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(MultiplyTest, StreamsRunSideBySide) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([this, i] {
      const Case c{.m = 64 + i, .n = 33, .k = 77};
      const HostProduct operands = Operands(c);
      const v1::Product product = Payloads(c, operands);
      for (int round = 0; round < 5; ++round) {
        ExpectRight(product, operands, {c.m, c.n, c.type}, Multiply(product, operands));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(MultiplyTest, EmptyStreamEndsWell) {
  StreamClient stream(*stub_);
  stream.HalfClose();
  EXPECT_TRUE(stream.Finish().ok());
}

}  // namespace
}  // namespace gemmd
