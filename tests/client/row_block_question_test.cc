// What the server is asked about a product in blocks of rows, and what its answer means.

#include "client/cpp/products/row_block_question.h"

#include "gtest/gtest.h"

namespace gemmd::client {
namespace {

namespace v1 = ::gemm::v1;

const std::byte kNoElements[1] = {};

MatrixView View(const Shape& shape) { return {.shape = shape, .data = kNoElements}; }

v1::RankKernelsRequest Ask(const Product& product) {
  const auto plan =
      PlanProduct(product, Transport::kRowBlocks, {.channels = 2, .row_blocks_per_channel = 2});
  EXPECT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->transport, Transport::kRowBlocks);
  return RowBlockQuestion(*plan, "host:1");
}

TEST(RowBlockQuestion, IsOfTheWholeProduct) {
  const v1::RankKernelsRequest plain = Ask({.a = View({.rows = 500, .cols = 30, .dtype = kF16}),
                                            .b = View({.rows = 30, .cols = 20, .dtype = kF16}),
                                            .kernel = {.family = "hopper"}});
  EXPECT_EQ(plain.device(), "host:1");
  EXPECT_EQ(plain.size().m(), 500);
  EXPECT_EQ(plain.size().n(), 20);
  EXPECT_EQ(plain.size().k(), 30);
  EXPECT_EQ(plain.types().a(), v1::DATA_TYPE_F16);
  EXPECT_EQ(plain.types().b(), v1::DATA_TYPE_F16);
  EXPECT_EQ(plain.family(), "hopper");
  EXPECT_FALSE(plain.layout().transpose_a());
  EXPECT_FALSE(plain.layout().transpose_b());
  EXPECT_FALSE(plain.epilogue());
}

TEST(RowBlockQuestion, HasTheRowMajorViewOfBAndTheEpilogue) {
  const MatrixView a = View({.rows = 500, .cols = 30});
  const MatrixView rows = View({.rows = 20, .cols = 30});
  const MatrixView columns = View({.rows = 30, .cols = 20, .layout = kColumnMajor});
  const MatrixView both = View({.rows = 20, .cols = 30, .layout = kColumnMajor});
  EXPECT_TRUE(Ask({.a = a, .b = rows, .transpose_b = true}).layout().transpose_b());
  EXPECT_TRUE(Ask({.a = a, .b = columns}).layout().transpose_b());
  EXPECT_FALSE(Ask({.a = a, .b = both, .transpose_b = true}).layout().transpose_b());
  EXPECT_TRUE(Ask({.a = a, .b = columns, .activation = kRelu}).epilogue());
  EXPECT_TRUE(Ask({.a = a, .b = columns, .bias = View({.rows = 1, .cols = 20})}).epilogue());
}

TEST(RowBlockQuestion, TheKernelThatWouldRunHasToPromiseIt) {
  v1::RankKernelsResponse ranking;
  EXPECT_FALSE(PromisesRowBlocks("", ranking));
  ranking.add_kernels()->set_name("chosen");
  ranking.add_kernels()->set_name("other");
  ranking.mutable_kernels(1)->set_row_blocks(true);
  EXPECT_FALSE(PromisesRowBlocks("", ranking));
  EXPECT_FALSE(PromisesRowBlocks("auto", ranking));
  EXPECT_FALSE(PromisesRowBlocks("chosen", ranking));
  EXPECT_TRUE(PromisesRowBlocks("other", ranking));
  EXPECT_FALSE(PromisesRowBlocks("not there", ranking));
  ranking.mutable_kernels(0)->set_row_blocks(true);
  EXPECT_TRUE(PromisesRowBlocks("", ranking));
  EXPECT_TRUE(PromisesRowBlocks("auto", ranking));
}

}  // namespace
}  // namespace gemmd::client
