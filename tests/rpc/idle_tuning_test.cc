// --idle-tuning from a product to the kernel that later ones get.
#include <string>

#include "absl/time/clock.h"
#include "gemm/machine.h"
#include "gemm/tuning.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/core/tuning.h"
#include "tests/base/temporary_folder.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using ::testing::AllOf;
using ::testing::HasSubstr;

class IdleTuningTest : protected WithTemporaryFolder, public RpcTest {
 protected:
  IdleTuningTest() : RpcTest(Options(folder_)) {}

  static std::string Path(const TemporaryFolder& folder) { return folder.Path("idle.tune"); }
  static ServerOptions Options(const TemporaryFolder& folder) {
    ServerOptions options = SmallServer();
    options.engine.idle_tuning = Path(folder);
    return options;
  }

  v1::ProductReport Multiply() {
    v1::MultiplyUnaryRequest request;
    *request.mutable_product()->mutable_a() = GeneratedOperand({48, 16, gemm::DType::kF32}, 1);
    *request.mutable_product()->mutable_b() = GeneratedOperand({16, 32, gemm::DType::kF32}, 2);
    grpc::ClientContext context;
    v1::MultiplyUnaryResponse response;
    const grpc::Status status = stub_->MultiplyUnary(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.report();
  }
};

TEST_F(IdleTuningTest, WhatWasFoundIsChosenWhenTheTablesAreReadAgain) {
  Multiply();
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  absl::StatusOr<gemm::TuningTable> table = ReadIdleTuning(Path(folder_));
  while (table.ok() && table->size() == 0 && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(20));
    table = ReadIdleTuning(Path(folder_));
  }
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->size(), 1u);
  const gemm::TunedChoice& choice = table->entries().at(gemm::HostMachine()).begin()->second;
  EXPECT_THAT(choice.kernel, HasSubstr("host_"));
  EXPECT_GT(choice.seconds, 0);
  EXPECT_NE(Multiply().rule(), v1::CHOICE_RULE_TABLE_EXACT) << "nobody has asked for it";
  grpc::ClientContext context;
  v1::ReloadTuningResponse response;
  const grpc::Status status = stub_->ReloadTuning(&context, {}, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.used(), 1);
  const v1::ProductReport report = Multiply();
  EXPECT_EQ(report.rule(), v1::CHOICE_RULE_TABLE_EXACT);
  EXPECT_EQ(report.kernel(), choice.kernel);
}

std::string TableOf(const std::string& kernel) {
  gemm::TuningTable table;
  const auto product = gemm::TunedProduct::Of({.m = 16, .n = 16, .k = 16});
  EXPECT_TRUE(table.Put(gemm::HostMachine(), product, {kernel, {}, 1}).ok());
  return gemm::FormatTuningTable(table);
}

TEST(IdleTuningFileTest, CountsMoreThanTheTables) {
  const TemporaryFolder folder;
  const std::string given = folder.Write("given.tune", TableOf("host_reference"));
  const std::string found = folder.Write("found.tune", TableOf("host_openblas"));
  const auto kernel = [](const gemm::TuningTable& table) {
    return table.entries().at(gemm::HostMachine()).begin()->second.kernel;
  };
  const auto both = ReadTuningTables(given, found);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->size(), 1u);
  EXPECT_EQ(kernel(*both), "host_openblas");
  const auto missing = ReadTuningTables(given, found + ".missing");
  ASSERT_TRUE(missing.ok()) << missing.status();
  EXPECT_EQ(kernel(*missing), "host_reference");
  folder.Write("found.tune", "gemmd tuning table 1\nhello\n");
  const absl::Status wrong = ReadTuningTables(given, found).status();
  EXPECT_TRUE(absl::IsInvalidArgument(wrong)) << wrong;
  EXPECT_THAT(std::string(wrong.message()),
              AllOf(HasSubstr("--idle-tuning: "), HasSubstr("found.tune line 2: ")));
}

TEST(IdleTuningFlagTest, NeedsBenchmarks) {
  ServerOptions options = SmallServer();
  options.engine.idle_tuning = "/nowhere/idle.tune";
  options.benchmark.time = absl::ZeroDuration();
  const absl::Status status = Server::Start(options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("--idle-tuning: '/nowhere/idle.tune'; requires --benchmark-limit above 0"));
}

TEST(IdleTuningFlagTest, NeedsAFolder) {
  ServerOptions options = SmallServer();
  options.engine.idle_tuning = "/nowhere/idle.tune";
  const absl::Status status = Server::Start(options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("--idle-tuning: '/nowhere/idle.tune'"), HasSubstr("can be written")));
}

}  // namespace
}  // namespace gemmd
