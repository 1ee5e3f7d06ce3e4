// Benchmarks over gRPC: their results, their bounds and their ends.
#include <future>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using grpc::StatusCode;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

ServerOptions BenchmarkServer() {
  ServerOptions options = SmallServer();
  options.benchmark.memory_bytes = 64 * kMiB;
  return options;
}

v1::BenchmarkRequest Request(int64_t m, int64_t n, int64_t k) {
  v1::BenchmarkRequest request;
  v1::ProductSize& size = *request.add_shapes();
  size.set_m(m);
  size.set_n(n);
  size.set_k(k);
  request.add_families("host");
  request.set_iterations(3);
  request.set_cutoff(1e9);  // all of them also where the machine is busy at the first
  return request;
}

// Goes on until something ends it.
v1::BenchmarkRequest EndlessRequest() {
  v1::BenchmarkRequest request = Request(200, 200, 200);
  request.add_kernels("host_reference");
  request.set_iterations(100'000);
  return request;
}

struct Heard {
  grpc::Status status;
  std::vector<v1::BenchmarkHeader> headers;
  std::vector<v1::BenchmarkProgress> progress;
  std::vector<v1::BenchmarkRows> rows;
  std::vector<v1::BenchmarkEnd> ends;

  // Rows of every shape, types and layout.
  std::vector<v1::BenchmarkRow> AllRows() const {
    std::vector<v1::BenchmarkRow> all;
    for (const v1::BenchmarkRows& part : rows) {
      all.insert(all.end(), part.rows().begin(), part.rows().end());
    }
    return all;
  }
};

// A benchmark under way.
class Call {
 public:
  Call(v1::GemmService::Stub& stub, const v1::BenchmarkRequest& request,
       absl::Duration timeout = absl::Minutes(5)) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    reader_ = stub.Benchmark(&context_, request);
  }

  // False at the end.
  bool ReadOne() {
    v1::BenchmarkResponse response;
    if (!reader_->Read(&response)) return false;
    if (response.has_header()) heard_.headers.push_back(response.header());
    if (response.has_progress()) heard_.progress.push_back(response.progress());
    if (response.has_rows()) heard_.rows.push_back(response.rows());
    if (response.has_end()) heard_.ends.push_back(response.end());
    return true;
  }
  Heard Finish() {
    while (ReadOne()) {
    }
    heard_.status = reader_->Finish();
    return heard_;
  }
  void Cancel() { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::BenchmarkResponse>> reader_;
  Heard heard_;
};

class BenchmarkTest : public RpcTest {
 protected:
  explicit BenchmarkTest(const ServerOptions& options = BenchmarkServer()) : RpcTest(options) {}

  Heard Run(const v1::BenchmarkRequest& request) {
    Heard heard = Call(*stub_, request).Finish();
    EXPECT_TRUE(heard.status.ok()) << heard.status.error_message();
    return heard;
  }

  v1::GetServerInfoResponse Info() {
    grpc::ClientContext context;
    v1::GetServerInfoResponse info;
    EXPECT_TRUE(stub_->GetServerInfo(&context, {}, &info).ok());
    return info;
  }

  // Waits until no benchmark runs: soon, and then another one may.
  void ExpectSoonFree() {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (Info().load().benchmark_running() && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    EXPECT_EQ(Run(Request(5, 5, 5)).ends.size(), 1u);
  }
};

TEST_F(BenchmarkTest, MeasuresTheKernelsOfAFamilyOnAShape) {
  const Heard heard = Run(Request(33, 17, 5));
  ASSERT_EQ(heard.headers.size(), 1u);
  const v1::BenchmarkHeader& header = heard.headers[0];
  EXPECT_EQ(header.device(), "host:0");
  EXPECT_EQ(header.vendor(), "OpenBLAS");
  EXPECT_EQ(header.version(), GEMMD_VERSION);
  EXPECT_EQ(header.candidates(), 2);
  ASSERT_EQ(header.shapes_size(), 1);
  EXPECT_EQ(header.shapes(0).k(), 5);
  EXPECT_EQ(header.budget().seconds(), 600);
  ASSERT_GE(header.metadata_size(), 1);
  EXPECT_EQ(header.metadata(0).key(), "device");
  ASSERT_EQ(heard.ends.size(), 1u);
  EXPECT_EQ(heard.ends[0].concurrent_jobs(), 0);

  const std::vector<v1::BenchmarkRow> rows = heard.AllRows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].kernel(), "host_openblas");
  EXPECT_EQ(rows[1].kernel(), "host_reference");
  for (const v1::BenchmarkRow& row : rows) {
    EXPECT_EQ(row.family(), "host");
    EXPECT_FALSE(row.baseline());
    ASSERT_TRUE(row.has_measurement()) << row.note();
    const v1::BenchmarkMeasurement& measurement = row.measurement();
    EXPECT_LE(measurement.max_error_over_bound(), 1);
    EXPECT_EQ(measurement.iterations(), 3);
    EXPECT_GT(measurement.fastest_seconds(), 0);
    EXPECT_LE(measurement.fastest_seconds(), measurement.median_seconds());
    EXPECT_LE(measurement.median_seconds(), measurement.slowest_seconds());
    EXPECT_NEAR(measurement.tflops(), 2.0 * 33 * 17 * 5 / measurement.median_seconds() * 1e-12,
                1e-9);
    ASSERT_TRUE(measurement.has_relative_to_vendor());
    EXPECT_FALSE(measurement.has_relative_to_cublaslt_best());
  }
  EXPECT_NEAR(rows[0].measurement().relative_to_vendor(), 1, 1e-9);
  // The operands are the same, so the corners of D differ by rounding alone.
  EXPECT_NEAR(rows[0].measurement().first_element(), rows[1].measurement().first_element(), 1e-4);
  EXPECT_NEAR(rows[0].measurement().last_element(), rows[1].measurement().last_element(), 1e-4);
  EXPECT_NE(rows[0].measurement().first_element(), 0);
}

TEST_F(BenchmarkTest, TypesLayoutAndPeersAreAsAsked) {
  v1::BenchmarkRequest request = Request(20, 30, 40);
  request.clear_families();
  request.add_kernels("*_reference");
  v1::KernelTypes& types = *request.add_types();
  types.set_a(v1::DATA_TYPE_F16);
  types.set_output(v1::DATA_TYPE_F16);
  request.mutable_layout()->set_transpose_b(true);
  request.set_warmup(0);
  request.mutable_inputs()->set_seed(7);
  request.mutable_inputs()->mutable_uniform();
  Heard heard = Run(request);
  EXPECT_GE(heard.rows.size(), 1u);
  bool baseline = false;
  for (const v1::BenchmarkRows& part : heard.rows) EXPECT_TRUE(part.complete());
  for (const v1::BenchmarkRow& row : heard.AllRows()) {
    EXPECT_EQ(row.types().a(), v1::DATA_TYPE_F16);
    EXPECT_EQ(row.types().output(), v1::DATA_TYPE_F16);
    EXPECT_FALSE(row.layout().transpose_a());
    EXPECT_TRUE(row.layout().transpose_b());
    EXPECT_LE(row.measurement().max_error_over_bound(), 1);
    // Operands with elements of [0, 1).
    EXPECT_GT(row.measurement().first_element(), 0);
    EXPECT_EQ(row.baseline(), row.kernel() != "host_reference");
    baseline = baseline || row.baseline();
  }
  EXPECT_TRUE(baseline);

  request.set_baselines(false);
  for (const v1::BenchmarkRow& row : Run(request).AllRows()) {
    EXPECT_EQ(row.kernel(), "host_reference");
    EXPECT_FALSE(row.measurement().has_relative_to_vendor());
  }
}

TEST_F(BenchmarkTest, RowsOfASuiteComeInItsOrderAndSayWhatTheBudgetLeftOut) {
  v1::BenchmarkRequest request = Request(2, 3, 4);
  request.set_suite("odd");
  request.clear_families();
  request.add_kernels("host_openblas");
  request.mutable_budget()->set_nanos(1'000'000);
  const Heard heard = Run(request);
  ASSERT_EQ(heard.headers.at(0).shapes_size(), 13);
  EXPECT_EQ(heard.headers[0].shapes(0).m(), 1021);
  EXPECT_EQ(heard.headers[0].shapes(12).m(), 2);
  EXPECT_EQ(heard.headers[0].budget().nanos(), 1'000'000);
  ASSERT_EQ(heard.rows.size(), 13u);
  for (int i = 0; i < 13; ++i) EXPECT_EQ(heard.rows[i].shape_index(), i);
  EXPECT_FALSE(heard.AllRows().back().has_measurement());
  EXPECT_THAT(heard.AllRows().back().note(), HasSubstr("the time budget ended"));
}

TEST_F(BenchmarkTest, MemoryPastTheBoundIsEveryRowsNote) {
  v1::BenchmarkRequest request = Request(2048, 2048, 2048);
  *request.add_shapes() = Request(8, 8, 8).shapes(0);
  request.add_types()->set_a(v1::DATA_TYPE_F64);
  const Heard heard = Run(request);
  ASSERT_EQ(heard.rows.size(), 2u);
  for (const v1::BenchmarkRow& row : heard.rows[0].rows()) {
    EXPECT_FALSE(row.has_measurement());
    EXPECT_THAT(row.note(), AllOf(HasSubstr("67108864"), HasSubstr("--benchmark-memory")));
  }
  for (const v1::BenchmarkRow& row : heard.rows[1].rows()) EXPECT_TRUE(row.has_measurement());
}

TEST_F(BenchmarkTest, TellsHowFarItIsAndWhoDisturbedIt) {
  v1::BenchmarkRequest request = Request(200, 200, 200);
  request.set_iterations(200);
  Call call(*stub_, request);
  ASSERT_TRUE(call.ReadOne());  // the header
  const HostProduct operands = {.a = RandomMatrix({8, 4, gemm::DType::kF32}, 1),
                                .b = RandomMatrix({4, 6, gemm::DType::kF32}, 2)};
  v1::Product product;
  *product.mutable_a() = PayloadOperand(operands.a);
  *product.mutable_b() = PayloadOperand(operands.b);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Multiply(product, operands).result.has_value());
  const Heard heard = call.Finish();
  ASSERT_TRUE(heard.status.ok()) << heard.status.error_message();
  EXPECT_EQ(heard.ends.at(0).concurrent_jobs(), 3);
  ASSERT_GE(heard.progress.size(), 1u);
  EXPECT_NE(heard.progress[0].step(), "");
  // At most five a second, and one.
  const auto& elapsed = heard.ends[0].elapsed();
  const double seconds = static_cast<double>(elapsed.seconds()) + elapsed.nanos() * 1e-9;
  EXPECT_LE(static_cast<double>(heard.progress.size()), 5 * seconds + 1);
}

TEST_F(BenchmarkTest, OneRunsAtATime) {
  Call first(*stub_, EndlessRequest());
  ASSERT_TRUE(first.ReadOne());
  const v1::Load load = Info().load();
  EXPECT_TRUE(load.benchmark_running());
  ASSERT_EQ(load.benchmarks_size(), 1);
  EXPECT_EQ(load.benchmarks(0).device(), "host:0");
  EXPECT_NE(load.benchmarks(0).subject(), "");
  EXPECT_FALSE(load.benchmarks(0).ending());
  const Heard second = Call(*stub_, Request(5, 5, 5)).Finish();
  EXPECT_EQ(second.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(second.status.error_message(), HasSubstr("one at a time"));
  EXPECT_TRUE(second.headers.empty());
  first.Cancel();
  EXPECT_EQ(first.Finish().status.error_code(), StatusCode::CANCELLED);
  ExpectSoonFree();
}

TEST_F(BenchmarkTest, ADeadlineEndsIt) {
  const absl::Time begin = absl::Now();
  Call call(*stub_, EndlessRequest(), absl::Seconds(2));
  ASSERT_TRUE(call.ReadOne()) << "else it may begin after the test has looked";
  EXPECT_EQ(call.Finish().status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
  ExpectSoonFree();
}

TEST_F(BenchmarkTest, AClientThatGoesAwayLeavesNothing) {
  auto call = std::make_unique<Call>(*stub_, EndlessRequest());
  ASSERT_TRUE(call->ReadOne());
  call->Cancel();
  call.reset();
  ExpectSoonFree();
}

TEST_F(BenchmarkTest, LimitsAreInTheServersInfo) {
  const v1::Limits limits = Info().limits();
  EXPECT_EQ(limits.benchmark_limit().seconds(), 600);
  EXPECT_EQ(limits.benchmark_memory_bytes(), 64 * kMiB);
  EXPECT_FALSE(Info().load().benchmark_running());
}

class NoBenchmarksTest : public BenchmarkTest {
 protected:
  static ServerOptions Options() {
    ServerOptions options = SmallServer();
    options.benchmark.time = absl::ZeroDuration();
    return options;
  }
  NoBenchmarksTest() : BenchmarkTest(Options()) {}
};

TEST_F(NoBenchmarksTest, AServerMayTakeNone) {
  const Heard heard = Call(*stub_, Request(5, 5, 5)).Finish();
  EXPECT_EQ(heard.status.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(heard.status.error_message(), HasSubstr("--benchmark-limit is 0"));
  EXPECT_EQ(Info().limits().benchmark_limit().seconds(), 0);
}

class BenchmarkDrainTest : public BenchmarkTest {
 protected:
  void TearDown() override {}
};

TEST_F(BenchmarkDrainTest, AServerThatStopsEndsIt) {
  Call call(*stub_, EndlessRequest());
  ASSERT_TRUE(call.ReadOne());
  const absl::Time begin = absl::Now();
  auto stopped =
      std::async(std::launch::async, [this] { return server_->Stop(absl::Seconds(30)); });
  const Heard heard = call.Finish();
  EXPECT_EQ(heard.status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_THAT(heard.status.error_message(), HasSubstr("draining"));
  EXPECT_TRUE(heard.ends.empty());
  stopped.get();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
}

class ShortBenchmarksTest : public BenchmarkTest {
 protected:
  static ServerOptions Options() {
    ServerOptions options = BenchmarkServer();
    options.benchmark.time = absl::Seconds(1);
    return options;
  }
  ShortBenchmarksTest() : BenchmarkTest(Options()) {}

  // Thousands of messages of rows. Most say that no time was left.
  static v1::BenchmarkRequest ManyRows() {
    v1::BenchmarkRequest request = Request(8, 8, 8);
    for (int i = 1; i < 256; ++i) *request.add_shapes() = request.shapes(0);
    request.add_types();  // any
    request.mutable_budget()->set_nanos(1'000'000);
    return request;
  }
};

TEST_F(ShortBenchmarksTest, AClientThatReadsGetsEveryRow) {
  const Heard heard = Run(ManyRows());
  EXPECT_EQ(heard.ends.size(), 1u);
  EXPECT_EQ(heard.rows.back().shape_index(), 255);
  EXPECT_GE(heard.rows.size(), 2000u) << "more than lies between a server and its client";
}

TEST_F(ShortBenchmarksTest, AClientThatDoesNotReadCannotHoldTheServer) {
  // gRPC is to hold little for the client.
  grpc::ChannelArguments little;
  little.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 16 * 1024);
  little.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const auto stub = v1::GemmService::NewStub(
      grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(), little));
  Call call(*stub, ManyRows());
  ASSERT_TRUE(call.ReadOne());
  const absl::Time begin = absl::Now();
  while (Info().load().benchmark_running() && absl::Now() - begin < absl::Seconds(40)) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  // The limit and ten seconds after the call's begin.
  EXPECT_GT(absl::Now() - begin, absl::Seconds(8)) << "it was not held at all";
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
  ExpectSoonFree();
  const Heard heard = call.Finish();
  EXPECT_EQ(heard.status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(heard.status.error_message(),
              AllOf(HasSubstr("did not read all rows within the 1s"), HasSubstr("the 10s after it"),
                    HasSubstr("--benchmark-limit")));
  EXPECT_TRUE(heard.ends.empty());
}

}  // namespace
}  // namespace gemmd
