// The kernels that a server with a tuning table chooses, and that it says it chooses.
#include <string>
#include <tuple>

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

constexpr char kTuned[] = "host_reference";  // never the first by rank
constexpr char kRanked[] = "host_openblas";

gemm::TunedProduct F32(int64_t m, int64_t n, int64_t k) {
  return {.a = gemm::DType::kF32,
          .b = gemm::DType::kF32,
          .d = gemm::DType::kF32,
          .compute = gemm::Compute::kF32,
          .m = m,
          .n = n,
          .k = k};
}

// 64x32x16 with these versions, 400x32x16 with others; a kernel that does not exist.
std::string TableFile(const TemporaryFolder& folder) {
  gemm::TuningTable table;
  const gemm::Machine here = gemm::HostMachine();
  gemm::Machine before = here;
  before.library = "0.0.1";
  EXPECT_TRUE(table.Put(here, F32(64, 32, 16), {kTuned, {}, 0.25}).ok());
  EXPECT_TRUE(table.Put(here, F32(5000, 32, 16), {"of_another_build", {}, 1}).ok());
  EXPECT_TRUE(table.Put(before, F32(400, 32, 16), {kTuned, {}, 0.5}).ok());
  return folder.Write("ranking.tune", gemm::FormatTuningTable(table));
}

v1::RankKernelsRequest Question(int64_t m, int64_t n, int64_t k) {
  v1::RankKernelsRequest request;
  request.mutable_size()->set_m(m);
  request.mutable_size()->set_n(n);
  request.mutable_size()->set_k(k);
  request.mutable_types()->set_a(v1::DATA_TYPE_F32);
  return request;
}

class RankingTest : protected WithTemporaryFolder, public RpcTest {
 protected:
  RankingTest() : RpcTest(Options(folder_)) {}

  static ServerOptions Options(const TemporaryFolder& folder) {
    ServerOptions options = SmallServer();
    options.engine.tuning_tables = TableFile(folder);
    return options;
  }

  v1::RankKernelsResponse Rank(const v1::RankKernelsRequest& request) {
    grpc::ClientContext context;
    v1::RankKernelsResponse response;
    const grpc::Status status = stub_->RankKernels(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    if (response.kernels().empty()) response.add_kernels();  // the test has failed
    return response;
  }

  std::string Refusal(const v1::RankKernelsRequest& request, grpc::StatusCode code) {
    grpc::ClientContext context;
    v1::RankKernelsResponse response;
    const grpc::Status status = stub_->RankKernels(&context, request, &response);
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    return status.error_message();
  }

  // The report of a product of generated operands.
  v1::ProductReport Multiply(int64_t m, int64_t n, int64_t k) {
    v1::MultiplyUnaryRequest request;
    v1::Product& product = *request.mutable_product();
    for (auto [operand, rows, cols] :
         {std::tuple(product.mutable_a(), m, k), std::tuple(product.mutable_b(), k, n)}) {
      operand->mutable_shape()->set_rows(rows);
      operand->mutable_shape()->set_cols(cols);
      operand->mutable_shape()->set_dtype(v1::DATA_TYPE_F32);
      operand->mutable_generator()->mutable_uniform();
    }
    grpc::ClientContext context;
    v1::MultiplyUnaryResponse response;
    const grpc::Status status = stub_->MultiplyUnary(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.report();
  }
};

TEST_F(RankingTest, AProductOfAShapeOfTheTableGetsItsKernelAndSaysSo) {
  const v1::ProductReport report = Multiply(64, 32, 16);
  EXPECT_EQ(report.kernel(), kTuned);
  EXPECT_EQ(report.rule(), v1::CHOICE_RULE_TABLE_EXACT);
  EXPECT_EQ(report.tuned_from().size().m(), 64);
  EXPECT_EQ(report.tuned_from().seconds(), 0.25);
  EXPECT_FALSE(report.tuned_from().other_versions());
  EXPECT_THAT(report.reason(), HasSubstr("fastest of the measured for 64x32x16"));
}

TEST_F(RankingTest, AProductNearAShapeOfTheTableGetsItsKernelAndSaysSo) {
  const v1::ProductReport report = Multiply(65, 31, 16);
  EXPECT_EQ(report.kernel(), kTuned);
  EXPECT_EQ(report.rule(), v1::CHOICE_RULE_TABLE_NEAR);
  EXPECT_EQ(report.tuned_from().size().m(), 64);
}

TEST_F(RankingTest, AnEntryOfAnotherVersionServesAndIsMarked) {
  const v1::ProductReport report = Multiply(400, 32, 16);
  EXPECT_EQ(report.kernel(), kTuned);
  EXPECT_TRUE(report.tuned_from().other_versions());
}

TEST_F(RankingTest, OtherProductsAreRankedAndSaySo) {
  const v1::ProductReport report = Multiply(7, 7, 7);
  EXPECT_EQ(report.kernel(), kRanked);
  EXPECT_EQ(report.rule(), v1::CHOICE_RULE_RANK);
  EXPECT_FALSE(report.has_tuned_from());
}

TEST_F(RankingTest, TheRankingBeginsWithWhatAProductGets) {
  const v1::RankKernelsResponse tuned = Rank(Question(64, 32, 16));
  EXPECT_EQ(tuned.device(), "host:0");
  EXPECT_EQ(tuned.machine().device(), gemm::HostMachine().device);
  EXPECT_EQ(tuned.types().output(), v1::DATA_TYPE_F32);
  EXPECT_EQ(tuned.types().compute(), v1::COMPUTE_MODE_F32);
  EXPECT_EQ(tuned.rule(), v1::CHOICE_RULE_TABLE_EXACT);
  ASSERT_EQ(tuned.kernels_size(), 2);
  EXPECT_EQ(tuned.kernels(0).name(), kTuned);
  EXPECT_EQ(tuned.kernels(0).tuned_from().seconds(), 0.25);
  EXPECT_EQ(tuned.kernels(1).name(), kRanked);
  EXPECT_THAT(tuned.kernels(1).reason(), HasSubstr("rank "));
  EXPECT_FALSE(tuned.kernels(1).has_tuned_from());

  const v1::RankKernelsResponse ranked = Rank(Question(7, 7, 7));
  EXPECT_EQ(ranked.rule(), v1::CHOICE_RULE_RANK);
  EXPECT_EQ(ranked.kernels(0).name(), kRanked);
}

TEST_F(RankingTest, TheLayoutAndTheEpilogueCount) {
  v1::RankKernelsRequest request = Question(64, 32, 16);
  request.set_epilogue(true);
  EXPECT_TRUE(Rank(request).kernels(0).tuned_from().other_epilogue());
  request = Question(64, 32, 16);
  request.mutable_layout()->set_transpose_b(true);
  EXPECT_EQ(Rank(request).rule(), v1::CHOICE_RULE_RANK);
}

TEST_F(RankingTest, AWrongQuestionIsRefusedByItsField) {
  constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
  v1::RankKernelsRequest request = Question(0, 1, 1);
  EXPECT_THAT(Refusal(request, kInvalid), AllOf(HasSubstr("size.m"), HasSubstr("1 to 16777216")));
  request = Question(1, 1, 1);
  request.clear_types();
  EXPECT_THAT(Refusal(request, kInvalid), HasSubstr("types.a"));
  request = Question(1, 1, 1);
  request.set_device("cuda:9");
  EXPECT_THAT(Refusal(request, kInvalid), AllOf(HasSubstr("cuda:9"), HasSubstr("host:0")));
  request = Question(1, 1, 1);
  request.set_family("hots");
  EXPECT_THAT(Refusal(request, grpc::StatusCode::NOT_FOUND), HasSubstr("hots"));
  request = Question(1, 1, 1);
  request.mutable_types()->set_a(v1::DATA_TYPE_S8);
  request.mutable_types()->set_b(v1::DATA_TYPE_F16);
  EXPECT_THAT(Refusal(request, kInvalid), HasSubstr("a=s8"));
}

TEST_F(RankingTest, TheServerCountsWhatItSkips) {
  const TuningLoad tuning = server_->engine().tuning();
  EXPECT_EQ(tuning.entries, 3u);
  EXPECT_EQ(tuning.used, 2u);
  EXPECT_EQ(tuning.other_versions, 1u);
  EXPECT_THAT(tuning.skipped, ::testing::ElementsAre("of_another_build"));
}

TEST(TuningTables, ALaterFileCountsMoreAndAWrongOneEndsTheStart) {
  gemm::TuningTable later;
  ASSERT_TRUE(later.Put(gemm::HostMachine(), F32(64, 32, 16), {kRanked, {}, 0.125}).ok());
  const TemporaryFolder folder;
  EngineOptions options = SmallServer().engine;
  options.tuning_tables =
      TableFile(folder) + "," + folder.Write("later.tune", gemm::FormatTuningTable(later));
  const auto engine = Engine::Create(options, nullptr);
  ASSERT_TRUE(engine.ok()) << engine.status();
  const auto ranking = (*engine)->RankKernels(
      {.m = 64, .n = 32, .k = 16, .a = gemm::DType::kF32, .b = gemm::DType::kF32});
  ASSERT_TRUE(ranking.ok()) << ranking.status();
  EXPECT_EQ(ranking->kernels[0].kernel->name, kRanked);
  EXPECT_EQ(ranking->rule, ChoiceRule::kTableExact);

  options.tuning_tables = folder.Write("wrong.tune", "gemmd tuning table 1\nhello\n");
  const absl::Status wrong = Engine::Create(options, nullptr).status();
  EXPECT_TRUE(absl::IsInvalidArgument(wrong)) << wrong;
  EXPECT_THAT(std::string(wrong.message()),
              AllOf(HasSubstr("--tuning-tables"), HasSubstr("wrong.tune line 2: ")));
  options.tuning_tables = "/nowhere/a.tune";
  const absl::Status missing = Engine::Create(options, nullptr).status();
  EXPECT_TRUE(absl::IsInvalidArgument(missing)) << missing;
  EXPECT_THAT(
      std::string(missing.message()),
      AllOf(HasSubstr("--tuning-tables"), HasSubstr("/nowhere/a.tune"), HasSubstr("No such file")));
}

}  // namespace
}  // namespace gemmd
