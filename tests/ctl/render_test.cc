// Messages of the contract as tables and as JSON, with everything that a server may say.
#include "client/ctl/output/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

namespace v1 = ::gemm::v1;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ReportText(const client::ProductReport& report) {
  Table summary = SummaryTable();
  AddReport(summary, report);
  std::ostringstream out;
  summary.Print(out);
  return out.str();
}

client::ProductReport SomeReport() {
  client::ProductReport report;
  report.set_kernel("hopper_f16");
  report.set_device("cuda:1");
  report.set_m(64);
  report.set_n(32);
  report.set_k(16);
  *report.mutable_result_shape() = ToProto(client::Shape{.rows = 64, .cols = 32});
  report.set_compute(client::kComputeF32);
  report.mutable_phases()->mutable_kernel()->set_nanos(1'500'000);
  return report;
}

TEST(RenderTest, AReportHasNoRowsForWhatDidNotHappen) {
  EXPECT_THAT(ReportText(SomeReport()),
              AllOf(ContainsRegex("kernel ms +1.500"), Not(HasSubstr("params")),
                    Not(HasSubstr("transposes")), Not(HasSubstr("copied")), Not(HasSubstr("d2d")),
                    Not(HasSubstr("check")), Not(HasSubstr("products"))));
  const Json json = ToJson(SomeReport());
  EXPECT_FALSE(json.contains("check"));
  EXPECT_FALSE(json.contains("tuned_from"));
  EXPECT_EQ(json["batch_count"], 1);
}

TEST(RenderTest, AReportSaysHowOperandsCameToTheDevice) {
  client::ProductReport report = SomeReport();
  const auto add = [&report](v1::OperandRole role) -> v1::OperandCopy& {
    v1::OperandCopy& copy = *report.add_copies();
    copy.set_operand(role);
    copy.set_from_device("cuda:0");
    copy.set_bytes(2 << 20);
    return copy;
  };
  add(v1::OPERAND_ROLE_A).set_reused(true);
  add(v1::OPERAND_ROLE_B).set_peer_to_peer(true);
  add(v1::OPERAND_ROLE_BIAS);
  report.mutable_phases()->mutable_device_to_device()->set_nanos(2'000'000);
  EXPECT_THAT(ReportText(report),
              AllOf(ContainsRegex("a copied +2.00 MiB from cuda:0, already there"),
                    ContainsRegex("b copied +2.00 MiB from cuda:0, from device to device"),
                    ContainsRegex("bias copied +2.00 MiB from cuda:0, through the host"),
                    ContainsRegex("d2d ms +2.000")));
  const Json json = ToJson(report);
  EXPECT_EQ(json["copies"][1]["operand"], "b");
  EXPECT_EQ(json["copies"][1]["peer_to_peer"], true);
  EXPECT_EQ(json["copies"][2]["bytes"], 2 << 20);
  EXPECT_EQ(json["device_to_device_seconds"], 0.002);
}

TEST(RenderTest, AReportSaysWhatTheCheckFound) {
  client::ProductReport report = SomeReport();
  v1::ResultCheck& check = *report.mutable_check();
  check.set_not_checked("alpha is 0");
  EXPECT_THAT(ReportText(report), HasSubstr("not checked: alpha is 0"));
  check.Clear();
  check.set_result(v1::CHECK_RESULT_WRONG);
  check.set_of_bound(2.5);
  check.set_uncovered_rows(3);
  check.set_before_activation(true);
  check.set_failed_kernel("hopper_bad");
  report.mutable_phases()->mutable_check()->set_nanos(3'000'000);
  EXPECT_THAT(ReportText(report),
              AllOf(HasSubstr("wrong, 2.50 of the bound, before the activation, 3 rows not "
                              "covered; the product of hopper_bad was replaced"),
                    ContainsRegex("check ms +3.000")));
  const Json json = ToJson(report);
  EXPECT_EQ(json["check"]["result"], "wrong");
  EXPECT_EQ(json["check"]["uncovered_rows"], 3);
  EXPECT_EQ(json["check"]["failed_kernel"], "hopper_bad");
  EXPECT_EQ(json["check_seconds"], 0.003);
}

TEST(RenderTest, AReportSaysHowManyProductsAGroupHad) {
  client::ProductReport report = SomeReport();
  EXPECT_EQ(ToJson(report)["group_count"], 0);
  report.set_group_count(64);
  EXPECT_EQ(ToJson(report)["group_count"], 64);
  EXPECT_THAT(ReportText(report), ContainsRegex("products +64, a group"));
}

TEST(RenderTest, AReportHasItsParametersTransposesAndMeasurement) {
  client::ProductReport report = SomeReport();
  (*report.mutable_params())["split_k"] = 4;
  report.set_batch_count(12);
  report.mutable_phases()->mutable_transpose()->set_nanos(4'000'000);
  report.mutable_tuned_from()->mutable_size()->set_m(60);
  report.mutable_tuned_from()->set_other_versions(true);
  EXPECT_THAT(ReportText(report),
              AllOf(ContainsRegex("params +split_k=4"), ContainsRegex("products +12"),
                    ContainsRegex("of kernel, transposes ms +4.000")));
  const Json json = ToJson(report);
  EXPECT_EQ(json["params"]["split_k"], 4);
  EXPECT_EQ(json["transpose_seconds"], 0.004);
  EXPECT_EQ(json["tuned_from"]["m"], 60);
  EXPECT_EQ(json["tuned_from"]["other_versions"], true);
}

TEST(RenderTest, EveryRuleHasAName) {
  EXPECT_EQ(RuleText(v1::CHOICE_RULE_UNSPECIFIED), "none");
  EXPECT_EQ(RuleText(v1::CHOICE_RULE_REQUEST), "request");
  EXPECT_EQ(RuleText(v1::CHOICE_RULE_RANK), "rank");
  EXPECT_EQ(RuleText(v1::CHOICE_RULE_TABLE_EXACT), "table exact");
  EXPECT_EQ(RuleText(v1::CHOICE_RULE_TABLE_NEAR), "table near");
  EXPECT_EQ(RuleText(v1::CHOICE_RULE_CHECK), "check");
  EXPECT_EQ(RuleText(v1::CHOICE_RULE_ESTIMATE), "estimate");
  EXPECT_EQ(RuleText(static_cast<v1::ChoiceRule>(99)), "rule 99");
}

client::MatrixInfo SharedMatrix() {
  client::MatrixInfo info;
  info.set_id("m1");
  info.set_name("weights");
  info.set_owner("alice");
  info.set_shared(true);
  info.set_bytes(1 << 10);
  info.mutable_expires()->set_seconds(1'700'000'000);
  *info.mutable_shape() = ToProto(client::Shape{.rows = 16, .cols = 16});
  return info;
}

TEST(RenderTest, MatricesOfSeveralCallersHaveTheirOwner) {
  client::MatrixInfo own = SharedMatrix();
  own.set_owner("bob");
  own.set_shared(false);
  own.clear_expires();
  std::ostringstream with;
  MatrixTable({SharedMatrix(), own}, /*owners=*/true).Print(with);
  EXPECT_THAT(with.str(),
              AllOf(HasSubstr("OWNER"), HasSubstr("alice, shared\n"), HasSubstr("bob\n"),
                    HasSubstr("2023-11-14 22:13:20Z"), HasSubstr("never")));
  std::ostringstream without;
  MatrixTable({own}).Print(without);
  EXPECT_THAT(without.str(), AllOf(Not(HasSubstr("OWNER")), Not(HasSubstr("bob"))));
  std::ostringstream one;
  MatrixSummary(SharedMatrix()).Print(one);
  EXPECT_THAT(one.str(), ContainsRegex("owner +alice, shared"));
  EXPECT_EQ(ToJson(SharedMatrix())["expires"], "2023-11-14T22:13:20+00:00");
  EXPECT_FALSE(ToJson(own).contains("expires"));
}

TEST(RenderTest, AKernelHasItsTypesAndParameters) {
  client::KernelInfo kernel;
  kernel.set_name("sgemm");
  v1::KernelParam& param = *kernel.add_params();
  param.set_name("swizzle");
  param.set_min(0);
  param.set_max(8);
  param.set_default_value(4);
  kernel.add_types()->set_a(client::kF16);
  const Json json = ToJson(kernel);
  EXPECT_EQ(json["params"][0]["name"], "swizzle");
  EXPECT_EQ(json["params"][0]["max"], 8);
  EXPECT_EQ(json["params"][0]["default"], 4);
  EXPECT_EQ(json["types"][0]["a"], "f16");
}

}  // namespace
}  // namespace gemmd::ctl
