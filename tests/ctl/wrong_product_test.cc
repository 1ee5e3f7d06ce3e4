// gemmctl and a server that answers with wrong products, and one that is busy at first.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "gemm/v1/gemm.grpc.pb.h"
#include "tests/base/temporary_folder.h"
#include "tests/ctl/served_gemmctl.h"

namespace gemmd::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Every element of every product is 0.
class ZeroServer : public gemm::v1::GemmService::Service {
 public:
  grpc::Status GetServerInfo(grpc::ServerContext*, const gemm::v1::GetServerInfoRequest*,
                             gemm::v1::GetServerInfoResponse* response) override {
    response->set_version("0");
    response->mutable_limits()->set_max_message_bytes(4 << 20);
    response->mutable_limits()->set_chunk_bytes(1 << 20);
    return grpc::Status::OK;
  }

  grpc::Status MultiplyUnary(grpc::ServerContext*, const gemm::v1::MultiplyUnaryRequest* request,
                             gemm::v1::MultiplyUnaryResponse* response) override {
    const auto& a = request->product().a().shape();
    const auto& b = request->product().b().shape();
    auto& report = *response->mutable_report();
    report.set_kernel("zero");
    report.set_m(a.rows());
    report.set_n(b.cols());
    report.set_k(a.cols());
    report.set_compute(gemm::v1::COMPUTE_MODE_F32);
    auto& shape = *report.mutable_result_shape();
    shape.set_rows(a.rows());
    shape.set_cols(b.cols());
    shape.set_dtype(gemm::v1::DATA_TYPE_F32);
    shape.set_layout(gemm::v1::LAYOUT_ROW_MAJOR);
    response->set_data(std::string(static_cast<size_t>(a.rows() * b.cols()) * 4, '\0'));
    return grpc::Status::OK;
  }
};

using WrongProductTest = ServedGemmctl<ZeroServer>;

TEST_F(WrongProductTest, MultiplyExitsWithThree) {
  EXPECT_EQ(Gemmctl({"multiply", "random:8x8:f32:1", "random:8x8:f32:2", "--verify"}),
            kExitWrongProduct);
  EXPECT_THAT(err_.str(), HasSubstr("gemmctl: verification failed: element ("));
  EXPECT_THAT(out_.str(), HasSubstr("zero"));
}

TEST_F(WrongProductTest, MultiplyWithoutVerifyBelievesTheServer) {
  EXPECT_EQ(Gemmctl({"multiply", "random:8x8:f32:1", "random:8x8:f32:2"}), kExitOk);
}

TEST_F(WrongProductTest, LoadTestExitsWithThree) {
  EXPECT_EQ(Gemmctl({"loadtest", "--requests", "20", "--warmup", "0", "--shape", "8x8x8",
                     "--verify=0.5"}),
            kExitWrongProduct);
  EXPECT_THAT(err_.str(), HasSubstr("gemmctl: verification failed: 8x8x8 with kernel auto"));
  EXPECT_THAT(out_.str(), HasSubstr("first wrong"));
}

// Refuses the products with the numbers that a test sets, and says when to try again.
class BusyServer : public ZeroServer {
 public:
  grpc::Status MultiplyUnary(grpc::ServerContext* context,
                             const gemm::v1::MultiplyUnaryRequest* request,
                             gemm::v1::MultiplyUnaryResponse* response) override {
    const int number = ++products_;
    if (number < first_refused || number > last_refused) {
      return ZeroServer::MultiplyUnary(context, request, response);
    }
    gemm::v1::RetryInfo retry;
    retry.mutable_retry_delay()->set_nanos(1'000'000);
    gemm::v1::StatusDetails details;
    auto& detail = *details.add_details();
    detail.set_type_url("type.googleapis.com/google.rpc.RetryInfo");
    detail.set_value(retry.SerializeAsString());
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, "full", details.SerializeAsString()};
  }

  int first_refused = 1;
  int last_refused = 0;

 private:
  std::atomic<int> products_ = 0;
};

using BusyServerTest = ServedGemmctl<BusyServer>;

TEST_F(BusyServerTest, ALoadTestWaitsBeforeItBegins) {
  service_.last_refused = 2;
  EXPECT_EQ(Gemmctl({"loadtest", "--requests", "5", "--warmup", "0", "--shape", "8x8x8"}), kExitOk)
      << err_.str();
  EXPECT_THAT(out_.str(), Not(HasSubstr("RESOURCE_EXHAUSTED")));
}

TEST_F(BusyServerTest, ALoadTestCountsWhatIsRefusedInIt) {
  service_.first_refused = service_.last_refused = 3;
  EXPECT_EQ(Gemmctl({"loadtest", "--requests", "5", "--warmup", "0", "--shape", "8x8x8"}),
            kExitFailed);
  EXPECT_THAT(out_.str(), HasSubstr("RESOURCE_EXHAUSTED"));
}

TEST_F(BusyServerTest, ObjectivesSayHowManyErrorsAreTooMany) {
  service_.first_refused = service_.last_refused = 3;
  EXPECT_EQ(Gemmctl({"loadtest", "--requests", "5", "--warmup", "0", "--shape", "8x8x8", "--slo",
                     "errors<50%,p99<1h"}),
            kExitOk)
      << err_.str();
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("errors<50%"), HasSubstr("20%"), HasSubstr("held")));
  service_.first_refused = service_.last_refused = 8;
  EXPECT_EQ(Gemmctl({"loadtest", "--requests", "5", "--warmup", "0", "--shape", "8x8x8", "--slo",
                     "errors<10%"}),
            kExitVerdict);
  EXPECT_THAT(out_.str(), HasSubstr("broken"));
}

TEST_F(WrongProductTest, AWrongProductIsWorseThanABrokenObjective) {
  EXPECT_EQ(Gemmctl({"loadtest", "--requests", "5", "--warmup", "0", "--shape", "8x8x8",
                     "--verify=1", "--slo", "p50<1us"}),
            kExitWrongProduct);
}

TEST_F(WrongProductTest, FindRateSaysWhereNoRateHolds) {
  EXPECT_EQ(Gemmctl({"loadtest", "--find-rate", "--rate", "0.02", "--slo", "p50<1us", "--duration",
                     "10ms", "--warmup", "0", "--shape", "8x8x8"}),
            kExitVerdict)
      << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("no rate held"));
}

TEST_F(WrongProductTest, ASweepAndItsFilesHaveEachConcurrency) {
  const TemporaryFolder folder;
  const std::string csv = folder.Path("sweep.csv"), html = folder.Path("sweep.html");
  EXPECT_EQ(Gemmctl({"loadtest", "--sweep", "concurrency=1..4", "--requests", "9", "--warmup", "0",
                     "--shape", "8x8x8", "--csv", csv.c_str(), "--html", html.c_str()}),
            kExitOk)
      << err_.str();
  EXPECT_THAT(folder.Content("sweep.csv"),
              AllOf(HasSubstr("\n1,"), HasSubstr("\n2,"), HasSubstr("\n4,")));
  EXPECT_THAT(folder.Content("sweep.html"),
              AllOf(HasSubstr("Latency over concurrency"), HasSubstr("</svg>"),
                    HasSubstr("--sweep concurrency=1..4"), Not(HasSubstr("<script"))));
}

TEST_F(WrongProductTest, RowsOfEachShapeAreInTheCsvFile) {
  const TemporaryFolder folder;
  const std::string csv = folder.Path("rows.csv");
  EXPECT_EQ(Gemmctl({"loadtest", "--requests", "8", "--warmup", "0", "--shape", "8x8x8=3",
                     "--shape", "4x4x4", "--csv", csv.c_str()}),
            kExitOk)
      << err_.str();
  EXPECT_THAT(
      folder.Content("rows.csv"),
      AllOf(HasSubstr("row,8x8x8,auto,latency,,6,0,"), HasSubstr("row,4x4x4,auto,latency,,2,0,"),
            HasSubstr("row,4x4x4,auto,kernel,"), HasSubstr("window,,,latency,0,")));
}

TEST_F(WrongProductTest, OptionsThatDoNotGoTogetherAreAUsageError) {
  EXPECT_EQ(Gemmctl({"loadtest", "--find-rate"}), kExitUsage);
  EXPECT_THAT(err_.str(), HasSubstr("--find-rate needs --slo"));
}

}  // namespace
}  // namespace gemmd::ctl
