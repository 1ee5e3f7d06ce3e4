// ReloadTuning: its answers, and products meanwhile.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemm/machine.h"
#include "gemm/tuning.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/temporary_folder.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ReloadTuningTest : protected WithTemporaryFolder, public RpcTest {
 protected:
  ReloadTuningTest() : RpcTest(Options(folder_)) {}

  // For each of the two kernels, the seconds of its entry say which table it is from.
  struct Choice {
    const char* kernel;
    double seconds;
  };
  static constexpr Choice kFirst{"host_reference", 0.25};
  static constexpr Choice kSecond{"host_openblas", 0.5};

  // The path of a file that has 16 x 16 x 16, and `skipped` kernels that no build has.
  static std::string Write(const TemporaryFolder& folder, const Choice& choice, int skipped = 0) {
    gemm::TuningTable table;
    gemm::TunedProduct product = gemm::TunedProduct::Of({.m = 16, .n = 16, .k = 16});
    absl::Status put = table.Put(gemm::HostMachine(), product, {choice.kernel, {}, choice.seconds});
    for (int i = 0; i < skipped; ++i) {
      product.m = 1000 + i;
      put.Update(table.Put(gemm::HostMachine(), product, {absl::StrCat("unknown_", i), {}, 1}));
    }
    EXPECT_TRUE(put.ok()) << put;
    return WriteText(folder, gemm::FormatTuningTable(table));
  }
  static std::string WriteText(const TemporaryFolder& folder, const std::string& text) {
    return folder.Write("a.tune", text);
  }
  static ServerOptions Options(const TemporaryFolder& folder) {
    ServerOptions options = SmallServer();
    options.engine.tuning_tables = Write(folder, kFirst);
    return options;
  }

  grpc::Status Reload(v1::ReloadTuningResponse& response) {
    grpc::ClientContext context;
    return stub_->ReloadTuning(&context, {}, &response);
  }

  v1::ProductReport Multiply() {
    v1::MultiplyUnaryRequest request;
    *request.mutable_product()->mutable_a() = GeneratedOperand({16, 16, gemm::DType::kF32}, 1);
    *request.mutable_product()->mutable_b() = GeneratedOperand({16, 16, gemm::DType::kF32}, 2);
    grpc::ClientContext context;
    v1::MultiplyUnaryResponse response;
    const grpc::Status status = stub_->MultiplyUnary(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.report();
  }
  static bool IsFrom(const v1::ProductReport& report, const Choice& choice) {
    return report.kernel() == choice.kernel && report.rule() == v1::CHOICE_RULE_TABLE_EXACT &&
           report.tuned_from().seconds() == choice.seconds;
  }
};

TEST_F(ReloadTuningTest, TheNextProductIsChosenForByTheNewTable) {
  EXPECT_TRUE(IsFrom(Multiply(), kFirst));
  Write(folder_, kSecond, 120);
  v1::ReloadTuningResponse response;
  const grpc::Status status = Reload(response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(IsFrom(Multiply(), kSecond));
  EXPECT_EQ(response.entries(), 121);
  EXPECT_EQ(response.used(), 1);
  EXPECT_EQ(response.other_versions(), 0);
  EXPECT_EQ(response.skipped(), 120);
  ASSERT_EQ(response.skipped_kernels_size(), 100);
  EXPECT_EQ(response.skipped_kernels(0), "unknown_0");
}

TEST_F(ReloadTuningTest, AWrongFileIsRefusedByItsLine) {
  WriteText(folder_, "gemmd tuning table 1\nhello\n");
  v1::ReloadTuningResponse response;
  const grpc::Status status = Reload(response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(),
              AllOf(HasSubstr("--tuning-tables: "), HasSubstr(".tune line 2: ")));
  EXPECT_TRUE(IsFrom(Multiply(), kFirst));
}

// Each product is chosen for by one of the tables, wholly.
TEST_F(ReloadTuningTest, GoesOnUnderProducts) {
  std::atomic<bool> over = false;
  std::atomic<int> products = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!over) {
        const v1::ProductReport report = Multiply();
        EXPECT_TRUE(IsFrom(report, kFirst) || IsFrom(report, kSecond)) << report.ShortDebugString();
        ++products;
      }
    });
  }
  int reloads = 0;
  for (; reloads < 20 || products < 100; ++reloads) {
    Write(folder_, reloads % 2 == 0 ? kSecond : kFirst);
    v1::ReloadTuningResponse response;
    const grpc::Status status = Reload(response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    if (!status.ok()) break;
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(IsFrom(Multiply(), reloads % 2 == 0 ? kFirst : kSecond));
}

}  // namespace
}  // namespace gemmd
