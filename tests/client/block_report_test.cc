#include "client/cpp/products/block_report.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gemmd::client {
namespace {

namespace v1 = ::gemm::v1;
using ::testing::HasSubstr;

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
