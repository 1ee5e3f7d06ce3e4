// How a product is split into blocks of rows, what the server is asked about it, and the report of
// the whole.
#include "client/cpp/products/row_blocks.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gemmd::client {
namespace {

namespace v1 = ::gemm::v1;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(RowBlocks, AreOfWholeTilesButForTheLast) {
  EXPECT_THAT(PlanRowBlocks(512, 4), ElementsAre(RowBlock{0, 128}, RowBlock{128, 128},
                                                 RowBlock{256, 128}, RowBlock{384, 128}));
  EXPECT_THAT(PlanRowBlocks(600, 2), ElementsAre(RowBlock{0, 384}, RowBlock{384, 216}));
  EXPECT_THAT(PlanRowBlocks(4096, 32), SizeIs(32));
}

TEST(RowBlocks, AreNoMoreThanTiles) {
  EXPECT_THAT(PlanRowBlocks(1, 64), ElementsAre(RowBlock{0, 1}));
  EXPECT_THAT(PlanRowBlocks(129, 64), ElementsAre(RowBlock{0, 128}, RowBlock{128, 1}));
  EXPECT_THAT(PlanRowBlocks(10000, 1), ElementsAre(RowBlock{0, 10000}));
}

TEST(RowBlocks, CoverEveryRowOnce) {
  for (int64_t rows = 1; rows < 3000; rows += 37) {
    for (int64_t blocks = 1; blocks < 40; ++blocks) {
      int64_t next = 0;
      for (const RowBlock& block : PlanRowBlocks(rows, blocks)) {
        ASSERT_EQ(block.first, next);
        ASSERT_GE(block.rows, 1);
        next += block.rows;
      }
      ASSERT_EQ(next, rows) << blocks;
    }
  }
}

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

v1::ProductReport Block(int64_t rows, int kernel_ms, int send_ms) {
  v1::ProductReport report;
  report.set_kernel("k");
  (*report.mutable_params())["group_m"] = 4;
  report.set_m(rows);
  report.set_n(1000);
  report.set_k(500);
  report.mutable_result_shape()->set_rows(rows);
  report.mutable_result_shape()->set_cols(1000);
  report.mutable_phases()->mutable_kernel()->set_nanos(kernel_ms * 1'000'000);
  report.mutable_phases()->mutable_send()->set_nanos(send_ms * 1'000'000);
  report.set_tflops(1);
  return report;
}

TEST(BlockReport, HasTheRowsAndTheKernelTimeOfAllBlocks) {
  const auto all = MergeReports({Block(128, 300, 20), Block(128, 400, 70), Block(44, 800, 50)});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->kernel(), "k");
  EXPECT_EQ(all->m(), 300);
  EXPECT_EQ(all->result_shape().rows(), 300);
  EXPECT_EQ(all->result_shape().cols(), 1000);
  EXPECT_EQ(all->phases().kernel().seconds(), 1);
  EXPECT_EQ(all->phases().kernel().nanos(), 500'000'000);
  EXPECT_EQ(all->phases().send().nanos(), 70'000'000) << "the longest";
  EXPECT_DOUBLE_EQ(all->tflops(), 2.0 * 300 * 1000 * 500 / 1.5 / 1e12);
  EXPECT_FALSE(all->has_check());
  EXPECT_FALSE(all->phases().has_transpose());
}

TEST(BlockReport, AProductThatWasSkippedHasNoSpeed) {
  v1::ProductReport skipped = Block(128, 1, 1);
  skipped.set_tflops(0);
  EXPECT_EQ(MergeReports({skipped, skipped})->tflops(), 0);
}

TEST(BlockReport, BlocksOfDifferentKernelsOrParametersAreNoProduct) {
  v1::ProductReport other = Block(128, 1, 1);
  other.set_kernel("another");
  const absl::Status kernels = MergeReports({Block(128, 1, 1), other}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(kernels)) << kernels;
  EXPECT_THAT(std::string(kernels.message()),
              HasSubstr("computed by k (group_m 4) and another (group_m 4)"));
  other = Block(128, 1, 1);
  (*other.mutable_params())["group_m"] = 5;
  EXPECT_TRUE(absl::IsFailedPrecondition(MergeReports({Block(128, 1, 1), other}).status()));
}

TEST(BlockReport, RowsOfBlocksThatWereNotCheckedAreNotCovered) {
  v1::ProductReport checked = Block(128, 1, 1);
  checked.mutable_check()->set_result(v1::CHECK_RESULT_PASSED);
  checked.mutable_check()->set_of_bound(0.25);
  const auto covered = MergeReports({checked, checked});
  EXPECT_EQ(covered->check().result(), v1::CHECK_RESULT_PASSED);
  EXPECT_EQ(covered->check().of_bound(), 0.25);
  EXPECT_EQ(covered->check().uncovered_rows(), 0);
  const auto partly = MergeReports({checked, Block(44, 1, 1)});
  EXPECT_EQ(partly->check().result(), v1::CHECK_RESULT_PARTIAL);
  EXPECT_EQ(partly->check().uncovered_rows(), 44);
}

TEST(BlockReport, ACopyOfAnOperandIsToldOnceAndAsTheOneThatMadeIt) {
  v1::ProductReport made = Block(128, 1, 1);
  made.add_copies()->set_operand(v1::OPERAND_ROLE_B);
  v1::ProductReport used = made;
  used.mutable_copies(0)->set_reused(true);
  const auto all = MergeReports({used, made, used});
  ASSERT_EQ(all->copies_size(), 1);
  EXPECT_FALSE(all->copies(0).reused());
}

}  // namespace
}  // namespace gemmd::client
