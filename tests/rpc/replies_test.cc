// The server's description of a kernel.
#include "server/rpc/codec/replies.h"

#include "gtest/gtest.h"

namespace gemmd {
namespace {

// Every row of the catalogue is deterministic; one that is not has to say so.
TEST(KernelReply, SaysWhetherResultsAreTheSame) {
  for (const bool deterministic : {true, false}) {
    const gemm::Kernel kernel{.name = "sgemm", .deterministic = deterministic};
    gemm::v1::KernelInfo info;
    info.set_deterministic(!deterministic);
    Fill(kernel, info);
    EXPECT_EQ(info.name(), "sgemm");
    EXPECT_EQ(info.deterministic(), deterministic);
  }
}

TEST(KernelReply, SaysWhetherItTakesBatches) {
  for (const bool batches : {true, false}) {
    gemm::v1::KernelInfo info;
    info.set_batches(!batches);
    Fill(gemm::Kernel{.name = "sgemm", .batches = batches}, info);
    EXPECT_EQ(info.batches(), batches);
  }
}

TEST(KernelReply, SaysWhetherItsRowsDependOnM) {
  for (const bool row_blocks : {true, false}) {
    gemm::v1::KernelInfo info;
    info.set_row_blocks(!row_blocks);
    Fill(gemm::Kernel{.name = "sgemm", .row_blocks = row_blocks}, info);
    EXPECT_EQ(info.row_blocks(), row_blocks);
  }
}

TEST(ReportReply, TheResultOfABatchIsStackedAndItsProductsAreNot) {
  JobReport report;
  report.m = 3;
  report.n = 4;
  report.k = 5;
  report.batch = 7;
  report.result = {21, 4, gemm::DType::kF32, false};
  gemm::v1::ProductReport rows;
  Fill(report, rows);
  EXPECT_EQ(rows.batch_count(), 7);
  EXPECT_EQ(rows.m(), 3);
  EXPECT_EQ(rows.result_shape().rows(), 21);
  EXPECT_EQ(rows.result_shape().cols(), 4);
  report.result = {3, 28, gemm::DType::kF32, true};
  gemm::v1::ProductReport columns;
  Fill(report, columns);
  EXPECT_EQ(columns.result_shape().rows(), 3);
  EXPECT_EQ(columns.result_shape().cols(), 28);
}

TEST(KernelReply, SaysWhetherItTakesGroups) {
  for (const bool groups : {true, false}) {
    gemm::v1::KernelInfo info;
    info.set_groups(!groups);
    Fill(gemm::Kernel{.name = "sgemm", .groups = groups}, info);
    EXPECT_EQ(info.groups(), groups);
  }
}

TEST(ReportReply, AGroupHasItsCountAndItsSum) {
  JobReport report;
  report.m = 30;
  report.group = 7;
  report.result = {30, 4, gemm::DType::kF32, false};
  gemm::v1::ProductReport group;
  Fill(report, group);
  EXPECT_EQ(group.group_count(), 7);
  EXPECT_EQ(group.batch_count(), 1);
  EXPECT_EQ(group.m(), 30);
  EXPECT_EQ(group.result_shape().rows(), 30);
}

TEST(ReportReply, HasTheCheckOnlyWhereOneWasWanted) {
  JobReport report;
  gemm::v1::ProductReport unchecked;
  Fill(report, unchecked);
  EXPECT_FALSE(unchecked.has_check());
  EXPECT_FALSE(unchecked.phases().has_check());

  report.check = {.result = CheckResult::kSuspect,
                  .of_bound = 0.25,
                  .uncovered_rows = 3,
                  .before_activation = true,
                  .failed_kernel = "sgemm"};
  report.phases.check = absl::Microseconds(40);
  gemm::v1::ProductReport checked;
  Fill(report, checked);
  EXPECT_EQ(checked.check().result(), gemm::v1::CHECK_RESULT_SUSPECT);
  EXPECT_EQ(checked.check().of_bound(), 0.25);
  EXPECT_EQ(checked.check().uncovered_rows(), 3);
  EXPECT_TRUE(checked.check().before_activation());
  EXPECT_EQ(checked.check().failed_kernel(), "sgemm");
  EXPECT_EQ(checked.phases().check().nanos(), 40'000);

  report.check = {.why_not = "alpha is 0"};
  gemm::v1::ProductReport skipped;
  Fill(report, skipped);
  EXPECT_EQ(skipped.check().result(), gemm::v1::CHECK_RESULT_UNSPECIFIED);
  EXPECT_EQ(skipped.check().not_checked(), "alpha is 0");
  EXPECT_FALSE(skipped.phases().has_check());
}

TEST(KernelReply, HasItsParameters) {
  static constexpr gemm::ParamSpec kParams[] = {
      {.name = "swizzle", .summary = "columns of tiles", .min = 1, .max = 8, .default_value = 4}};
  gemm::v1::KernelInfo info;
  Fill(gemm::Kernel{.name = "sgemm", .params = kParams}, info);
  ASSERT_EQ(info.params_size(), 1);
  EXPECT_EQ(info.params(0).name(), "swizzle");
  EXPECT_EQ(info.params(0).summary(), "columns of tiles");
  EXPECT_EQ(info.params(0).min(), 1);
  EXPECT_EQ(info.params(0).max(), 8);
  EXPECT_EQ(info.params(0).default_value(), 4);
}

TEST(ReportReply, HasTheTimeOfTransposesOnlyWhereThereWereSome) {
  JobReport report;
  gemm::v1::ProductReport without;
  Fill(report, without);
  EXPECT_FALSE(without.phases().has_transpose());
  report.phases.transpose = absl::Microseconds(40);
  gemm::v1::ProductReport with;
  Fill(report, with);
  EXPECT_EQ(with.phases().transpose().nanos(), 40'000);
}

}  // namespace
}  // namespace gemmd
