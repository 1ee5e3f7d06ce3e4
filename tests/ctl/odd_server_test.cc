// How gemmctl shows servers that this machine does not have: with GPUs, without benchmarks, newer
// ones, and those that break the contract.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gemm/kernel.h"
#include "gemm/v1/gemm.grpc.pb.h"
#include "nlohmann/json.hpp"
#include "tests/base/temporary_folder.h"
#include "tests/ctl/served_gemmctl.h"

namespace gemmd::ctl {
namespace {

namespace v1 = gemm::v1;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Answers what the test has set.
class ScriptedServer : public v1::GemmService::Service {
 public:
  grpc::Status GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest*,
                             v1::GetServerInfoResponse* response) override {
    *response = info;
    return grpc::Status::OK;
  }
  grpc::Status ListKernels(grpc::ServerContext*, const v1::ListKernelsRequest*,
                           v1::ListKernelsResponse* response) override {
    *response = kernels;
    return grpc::Status::OK;
  }
  grpc::Status ListMatrices(grpc::ServerContext*, const v1::ListMatricesRequest* request,
                            v1::ListMatricesResponse* response) override {
    asked = *request;
    *response = matrices;
    return grpc::Status::OK;
  }
  grpc::Status RankKernels(grpc::ServerContext*, const v1::RankKernelsRequest* request,
                           v1::RankKernelsResponse* response) override {
    ranked = *request;
    *response = ranking;
    return grpc::Status::OK;
  }
  grpc::Status Benchmark(grpc::ServerContext*, const v1::BenchmarkRequest* request,
                         grpc::ServerWriter<v1::BenchmarkResponse>* writer) override {
    benchmarks_asked.push_back(*request);
    // A client that hangs up at a wrong message leaves this running: the test may write the next
    // script meanwhile.
    const std::vector<v1::BenchmarkResponse> script = benchmark;
    for (const v1::BenchmarkResponse& message : script) writer->Write(message);
    return grpc::Status::OK;
  }

  v1::GetServerInfoResponse info;
  v1::ListKernelsResponse kernels;
  v1::ListMatricesResponse matrices;
  v1::ListMatricesRequest asked;
  v1::RankKernelsResponse ranking;
  v1::RankKernelsRequest ranked;
  std::vector<v1::BenchmarkResponse> benchmark;
  std::vector<v1::BenchmarkRequest> benchmarks_asked;
};

using OddServerTest = ServedGemmctl<ScriptedServer>;

TEST_F(OddServerTest, InfoShowsALostDeviceTheCallerAndWhatIsNotThere) {
  v1::DeviceInfo& device = *service_.info.add_devices();
  device.set_name("cuda:0");
  device.set_unhealthy_reason("an illegal memory access");
  device.set_estimates("NVIDIA H200");
  service_.info.mutable_caller()->set_name("alice");
  service_.info.mutable_caller()->add_roles("call");
  service_.info.mutable_caller()->add_roles("metrics");
  EXPECT_EQ(Gemmctl({"info"}), kExitOk) << err_.str();
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("an illegal memory access"), HasSubstr("NVIDIA H200"),
                                ContainsRegex("batches +none"), ContainsRegex("groups +none"),
                                ContainsRegex("benchmark +none taken"),
                                HasSubstr("alice, with the roles call, metrics")));
  EXPECT_EQ(Gemmctl({"info", "--json"}), kExitOk) << err_.str();
  const auto json = nlohmann::json::parse(out_.str());
  EXPECT_EQ(json["devices"][0]["unhealthy_reason"], "an illegal memory access");
  EXPECT_EQ(json["devices"][0]["estimates"], "NVIDIA H200");
  EXPECT_EQ(json["caller"]["roles"][1], "metrics");
}

TEST_F(OddServerTest, InfoShowsABenchmarkUnderWay) {
  service_.info.mutable_limits()->mutable_benchmark_limit()->set_seconds(60);
  service_.info.mutable_load()->set_benchmark_running(true);
  EXPECT_EQ(Gemmctl({"info"}), kExitOk) << err_.str();
  EXPECT_THAT(out_.str(), ContainsRegex("benchmark +running; at most 1m"));
  v1::RunningBenchmark& benchmark = *service_.info.mutable_load()->add_benchmarks();
  benchmark.set_caller("alice");
  benchmark.set_device("cuda:0");
  benchmark.set_subject("shape 3/125 4096x4096x4096: host_reference");
  benchmark.mutable_age()->set_seconds(83);
  benchmark.set_ending(true);
  service_.info.mutable_load()->add_benchmarks()->set_subject("not begun");
  EXPECT_EQ(Gemmctl({"info"}), kExitOk) << err_.str();
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("ends, alice's, for 83.0 s on cuda:0: shape 3/125 4096x4096x4096"),
                    HasSubstr("not begun")));
  EXPECT_EQ(Gemmctl({"info", "--json"}), kExitOk) << err_.str();
  const auto load = nlohmann::json::parse(out_.str())["load"];
  EXPECT_EQ(load["benchmarks"][0]["caller"], "alice");
  EXPECT_EQ(load["benchmarks"][0]["age_seconds"], 83);
  EXPECT_EQ(load["benchmarks"][0]["ending"], true);
  EXPECT_EQ(load["benchmarks"][1]["ending"], false);
}

TEST_F(OddServerTest, KernelsThatNoDeviceRunsAreSaidToBeSo) {
  v1::KernelInfo& kernel = *service_.kernels.add_kernels();
  kernel.set_name("hgemm_sm100");
  kernel.set_family("grouped");
  kernel.set_unavailable_reason("needs sm_100");
  EXPECT_EQ(Gemmctl({"kernels", "--available"}), kExitOk) << err_.str();
  EXPECT_EQ(out_.str(), "No device of the server runs any of them.\n");
  EXPECT_EQ(Gemmctl({"kernels", "hgemm_sm100", "--json"}), kExitOk) << err_.str();
  EXPECT_EQ(nlohmann::json::parse(out_.str())["kernels"][0]["unavailable_reason"], "needs sm_100");
}

TEST_F(OddServerTest, TlsIsNotSpokenWithAServerThatHasNone) {
  EXPECT_EQ(Gemmctl({"info"}), kExitOk) << err_.str();
  EXPECT_EQ(Gemmctl({"--tls", "--deadline", "5s", "info"}), kExitFailed);
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("UNAVAILABLE"), HasSubstr(address_)));
}

TEST_F(OddServerTest, MatricesOfOthersAreListedWithTheirOwners) {
  v1::MatrixInfo& matrix = *service_.matrices.add_matrices();
  matrix.set_id("m7");
  matrix.set_owner("alice");
  matrix.set_shared(true);
  EXPECT_EQ(Gemmctl({"matrix", "list"}), kExitOk) << err_.str();
  EXPECT_THAT(out_.str(), Not(HasSubstr("OWNER")));
  EXPECT_EQ(Gemmctl({"matrix", "list", "w/", "--shared"}), kExitOk) << err_.str();
  EXPECT_TRUE(service_.asked.shared());
  EXPECT_EQ(service_.asked.name_prefix(), "w/");
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("OWNER"), HasSubstr("alice, shared")));
  EXPECT_EQ(Gemmctl({"matrix", "list", "--every-owner"}), kExitOk) << err_.str();
  EXPECT_TRUE(service_.asked.every_owner());
  EXPECT_THAT(out_.str(), HasSubstr("alice, shared"));
}

v1::RankedKernel Ranked(const std::string& name) {
  v1::RankedKernel kernel;
  kernel.set_name(name);
  kernel.set_reason("because of " + name);
  return kernel;
}

TEST_F(OddServerTest, ExplainShowsAGpuWithItsEstimates) {
  v1::RankKernelsResponse& ranking = service_.ranking;
  ranking.set_device("cuda:0");
  ranking.mutable_machine()->set_device("NVIDIA H200");
  ranking.mutable_machine()->set_driver("580.1");
  ranking.mutable_machine()->set_cuda("13.0");
  ranking.mutable_machine()->set_library("0.9");
  ranking.mutable_types()->set_a(v1::DATA_TYPE_F16);
  ranking.mutable_types()->set_b(v1::DATA_TYPE_F16);
  ranking.mutable_types()->set_output(v1::DATA_TYPE_F16);
  ranking.mutable_types()->set_compute(v1::COMPUTE_MODE_F32);
  ranking.set_rule(v1::CHOICE_RULE_ESTIMATE);
  v1::RankedKernel first = Ranked("hopper_f16");
  first.set_estimated_seconds(25e-6);
  first.set_workspace_bytes(3 << 20);
  (*first.mutable_params())["split_k"] = gemm::kOwnChoice;
  (*first.mutable_params())["swizzle"] = 8;
  *ranking.add_kernels() = first;
  *ranking.add_kernels() = Ranked("cublaslt_f16");
  const std::vector<const char*> words = {"explain", "-m", "64",      "-n",  "32",
                                          "-k",      "16", "--types", "f16", "--epilogue"};
  EXPECT_EQ(Gemmctl(words), kExitOk) << err_.str();
  EXPECT_TRUE(service_.ranked.epilogue());
  EXPECT_EQ(service_.ranked.types().a(), v1::DATA_TYPE_F16);
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("f16:f16:f16:f32  nn  with an epilogue"),
                    HasSubstr("NVIDIA H200, driver 580.1, CUDA 13.0, library 0.9"),
                    ContainsRegex("by +estimate"), HasSubstr("25.0 us"), HasSubstr("3.00 MiB"),
                    HasSubstr("split_k=own"), HasSubstr("swizzle=8")));
  EXPECT_EQ(Gemmctl({"explain", "-m", "64", "-n", "32", "-k", "16", "--json"}), kExitOk);
  const auto json = nlohmann::json::parse(out_.str());
  EXPECT_EQ(json["kernels"][0]["estimated_seconds"], 25e-6);
  EXPECT_EQ(json["kernels"][0]["params"]["swizzle"], 8);
  EXPECT_FALSE(json["kernels"][1].contains("estimated_seconds"));
}

TEST_F(OddServerTest, ExplainShowsWhatANewerServerSays) {
  *service_.ranking.add_kernels() = Ranked("f4_kernel");
  service_.ranking.set_rule(static_cast<v1::ChoiceRule>(99));
  service_.ranking.mutable_types()->set_a(static_cast<v1::DataType>(77));
  EXPECT_EQ(Gemmctl({"explain", "-m", "1", "-n", "1", "-k", "1"}), kExitOk) << err_.str();
  EXPECT_THAT(out_.str(), ContainsRegex("by +rule 99"));
  EXPECT_EQ(Gemmctl({"explain", "-m", "1", "-n", "1", "-k", "1", "--json"}), kExitOk);
  EXPECT_EQ(nlohmann::json::parse(out_.str())["types"], "");
}

TEST_F(OddServerTest, AnEmptyRankingIsTheServersError) {
  EXPECT_EQ(Gemmctl({"explain", "-m", "1", "-n", "1", "-k", "1"}), kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("gemmctl: INTERNAL: the server ranked no kernels"));
}

TEST_F(OddServerTest, ExplainTakesOneCombinationOfTypes) {
  for (const char* types : {"f16,f32", "*:f16"}) {
    EXPECT_EQ(Gemmctl({"explain", "-m", "1", "-n", "1", "-k", "1", "--types", types}), kExitUsage);
    EXPECT_THAT(err_.str(), HasSubstr("one combination here, with the type of A")) << types;
  }
}

// The messages of a benchmark, each as a server sends it.
v1::BenchmarkResponse Header() {
  v1::BenchmarkResponse message;
  v1::ProductSize& size = *message.mutable_header()->add_shapes();
  size.set_m(8);
  size.set_n(8);
  size.set_k(8);
  message.mutable_header()->set_device("cuda:0");
  message.mutable_header()->set_vendor("cuBLAS");
  return message;
}

v1::BenchmarkResponse Progress(int shape) {
  v1::BenchmarkResponse message;
  message.mutable_progress()->set_shape_index(shape);
  return message;
}

v1::BenchmarkResponse Rows(int shape, v1::DataType a, double error_over_bound = 0.5) {
  v1::BenchmarkResponse message;
  message.mutable_rows()->set_shape_index(shape);
  message.mutable_rows()->set_complete(true);
  v1::BenchmarkRow& row = *message.mutable_rows()->add_rows();
  row.set_kernel("odd_kernel");
  row.mutable_types()->set_a(a);
  row.mutable_types()->set_b(v1::DATA_TYPE_F32);
  row.mutable_types()->set_output(v1::DATA_TYPE_F32);
  row.mutable_types()->set_compute(v1::COMPUTE_MODE_F32);
  row.mutable_measurement()->set_median_seconds(1e-3);
  row.mutable_measurement()->set_tflops(1);
  row.mutable_measurement()->set_gain(0.25);
  row.mutable_measurement()->set_relative_to_vendor(0.75);
  row.mutable_measurement()->set_relative_to_cublaslt_best(0.5);
  row.mutable_measurement()->set_max_error_over_bound(error_over_bound);
  return message;
}

v1::BenchmarkResponse End(int concurrent_jobs = 0) {
  v1::BenchmarkResponse message;
  message.mutable_end()->set_concurrent_jobs(concurrent_jobs);
  return message;
}

TEST_F(OddServerTest, BenchSaysThatJobsDisturbedIt) {
  service_.benchmark = {Header(), Progress(0), Rows(0, v1::DATA_TYPE_F32), End(3)};
  EXPECT_EQ(Gemmctl({"bench", "--shape", "8", "--quiet"}), kExitOk) << err_.str();
  EXPECT_THAT(err_.str(), HasSubstr("3 jobs ran on the device meanwhile"));
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("odd_kernel"), HasSubstr("of cuBLAS")));
  EXPECT_EQ(Gemmctl({"bench", "--shape", "8", "--quiet", "--json"}), kExitOk) << err_.str();
  const auto json = nlohmann::json::parse(out_.str());
  EXPECT_EQ(json["metadata"]["disturbed by"], "3 jobs");
  EXPECT_EQ(json["rows"][0]["gain"], 0.25);
  EXPECT_EQ(json["rows"][0]["of_vendor"], 0.75);
}

TEST_F(OddServerTest, BenchWithAWrongResultExitsWithThree) {
  service_.benchmark = {Header(), Rows(0, v1::DATA_TYPE_F32, 2), End()};
  EXPECT_EQ(Gemmctl({"bench", "--shape", "8", "--quiet"}), kExitWrongProduct);
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("verification failed"), HasSubstr("odd_kernel")));
}

// gemmctl tune, with one kernel.
class TuneOddServerTest : public OddServerTest {
 protected:
  TuneOddServerTest() {
    kernel_.set_name("odd_kernel");
    kernel_.set_family("simt");
    kernel_.set_deterministic(true);
    kernel_.add_devices("host:0");
    v1::KernelTypes& types = *kernel_.add_types();
    types.set_a(v1::DATA_TYPE_F32);
    types.set_b(v1::DATA_TYPE_F32);
    types.set_output(v1::DATA_TYPE_F32);
    types.set_compute(v1::COMPUTE_MODE_F32);
    v1::MachineInfo& machine = *header_.mutable_header()->mutable_machine();
    machine.set_device("odd device");
    machine.set_driver("1");
    machine.set_cuda("1");
    machine.set_library("1");
  }

  int Tune(const char* what, const char* value) {
    const TemporaryFolder folder;
    const std::string table = folder.Path("odd.tune");
    return Gemmctl({"tune", what, value, "--rounds", "1", "--quiet", "-o", table.c_str()});
  }

  v1::KernelInfo& kernel_ = *service_.kernels.add_kernels();
  v1::BenchmarkResponse header_ = Header();
};

TEST_F(TuneOddServerTest, LeavesOutWhatIsNotDeterministic) {
  service_.benchmark = {header_, Rows(0, v1::DATA_TYPE_F32), End()};
  EXPECT_EQ(Tune("--shapes", "8"), kExitOk) << err_.str();
  kernel_.set_deterministic(false);
  EXPECT_EQ(Tune("--shapes", "8"), kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("no deterministic kernel of the selection"));
}

TEST_F(TuneOddServerTest, MeasuresEachShapeOfASuite) {
  service_.benchmark = {header_, Rows(0, v1::DATA_TYPE_F32), End()};
  EXPECT_EQ(Tune("--suite", "sgemm-8"), kExitOk) << err_.str();
  EXPECT_EQ(service_.benchmarks_asked.size(), 8u);
}

TEST_F(TuneOddServerTest, SaysWhatItsFiguresAreWorth) {
  service_.benchmark = {header_, Rows(0, v1::DATA_TYPE_F32, 2), End(3)};
  EXPECT_EQ(Tune("--shapes", "8"), kExitWrongProduct);
  EXPECT_THAT(err_.str(),
              AllOf(HasSubstr("3 jobs ran on the device meanwhile"),
                    HasSubstr("verification failed, so they are not in the table: odd_kernel")));
  service_.benchmark = {header_, End()};
  Tune("--shapes", "8");
  EXPECT_THAT(err_.str(), HasSubstr("so not in the table: 8x8x8 nn"));
}

TEST_F(TuneOddServerTest, AWrongFileOfShapesIsAWrongCommandLine) {
  EXPECT_EQ(Tune("--shapes-file", "/nowhere"), kExitUsage);
  EXPECT_THAT(err_.str(), HasSubstr("/nowhere"));
  const TemporaryFolder folder;
  const std::string file = folder.Write("shapes.txt", "8x8\n");
  EXPECT_EQ(Tune("--shapes-file", file.c_str()), kExitUsage);
  EXPECT_THAT(err_.str(), HasSubstr("8x8"));
  folder.Write("shapes.txt", "# none\n");
  EXPECT_EQ(Tune("--shapes-file", file.c_str()), kExitUsage);
  EXPECT_EQ(service_.benchmarks_asked.size(), 0u);
}

TEST_F(OddServerTest, BenchNamesWhatTheServerDidOtherwiseThanTheContract) {
  struct Case {
    std::vector<v1::BenchmarkResponse> messages;
    const char* sentence;
  };
  const std::vector<Case> cases = {
      {{Progress(0), End()}, "the benchmark began without its header"},
      {{Header(), Progress(1), End()}, "the server speaks of shape 1 of 1"},
      {{Header(), Progress(-1), End()}, "the server speaks of shape -1 of 1"},
      {{Header(), Rows(7, v1::DATA_TYPE_F32), End()}, "the server speaks of shape 7 of 1"},
      {{Header(), Rows(0, static_cast<v1::DataType>(77)), End()},
       "the server speaks of types that this gemmctl does not know"},
      {{Header(), Rows(0, v1::DATA_TYPE_F32)}, "the benchmark ended without its last word"},
      {{}, "the benchmark ended without its last word"},
  };
  for (const Case& test : cases) {
    service_.benchmark = test.messages;
    EXPECT_EQ(Gemmctl({"bench", "--shape", "8", "--quiet"}), kExitFailed) << test.sentence;
    EXPECT_THAT(err_.str(), HasSubstr(std::string("gemmctl: INTERNAL: ") + test.sentence));
  }
}

TEST_F(OddServerTest, BenchKeepsTheRowsThatCameBeforeAnError) {
  service_.benchmark = {Header(), Rows(0, v1::DATA_TYPE_F32), Rows(7, v1::DATA_TYPE_F32), End()};
  EXPECT_EQ(Gemmctl({"bench", "--shape", "8", "--quiet"}), kExitFailed);
  EXPECT_THAT(out_.str(), HasSubstr("odd_kernel"));
  EXPECT_THAT(err_.str(), Not(HasSubstr("verification failed")));
}

TEST_F(OddServerTest, BenchNeedsShapes) {
  EXPECT_EQ(Gemmctl({"bench"}), kExitUsage);
  EXPECT_THAT(err_.str(), HasSubstr("bench needs --suite or --shapes"));
}

}  // namespace
}  // namespace gemmd::ctl
