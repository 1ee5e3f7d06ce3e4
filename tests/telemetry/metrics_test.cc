#include "server/telemetry/metrics.h"

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/bounds/bound_error.h"
#include "server/telemetry/families.h"
#include "tests/telemetry/fake_catalogue.h"
#include "tests/telemetry/scrape.h"

namespace gemmd {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// 2e9 operations in a kernel of 1 ms: 2 TFLOPS.
JobReport FinishedJob() {
  JobReport report;
  report.kernel = "fast_f32";
  report.types.a = gemm::DType::kF32;
  report.phases = {.receive = absl::Milliseconds(3),
                   .queue = absl::Microseconds(4),
                   .host_to_device = absl::Milliseconds(2),
                   .kernel = absl::Milliseconds(1),
                   .device_to_host = absl::Microseconds(700),
                   .send = absl::Milliseconds(6),
                   .total = absl::Milliseconds(12)};
  report.bytes_in = 3000;
  report.bytes_out = 1000;
  report.flops = 2e9;
  return report;
}

class MetricsTest : public ::testing::Test {
 protected:
  ParsedScrape Scrape() const { return ParseScrape(metrics_.Scrape()); }

  Metrics metrics_{FakeMetricsOptions()};
};

TEST_F(MetricsTest, CountsJobsByFamilyTypeAndOutcome) {
  JobReport other = FinishedJob();
  other.kernel = "slow";
  other.types.a = gemm::DType::kBF16;
  metrics_.OnJobEnd(FinishedJob(), absl::OkStatus());
  metrics_.OnJobEnd(FinishedJob(), absl::OkStatus());
  metrics_.OnJobEnd(FinishedJob(), absl::CancelledError("gone"));
  metrics_.OnJobEnd(other, absl::OkStatus());
  const ParsedScrape scrape = Scrape();
  EXPECT_EQ(scrape.at(R"(gemmd_jobs_total{dtype="f32",family="fast",outcome="OK"})"), 2);
  EXPECT_EQ(scrape.at(R"(gemmd_jobs_total{dtype="f32",family="fast",outcome="CANCELLED"})"), 1);
  EXPECT_EQ(scrape.at(R"(gemmd_jobs_total{dtype="bf16",family="slow",outcome="OK"})"), 1);
  EXPECT_EQ(scrape.types.at("gemmd_jobs_total"), "counter");
}

TEST_F(MetricsTest, CountsTheProductsOfBatchesApartFromJobs) {
  JobReport batch = FinishedJob();
  batch.batch = 1000;
  metrics_.OnJobEnd(FinishedJob(), absl::OkStatus());
  metrics_.OnJobEnd(batch, absl::OkStatus());
  metrics_.OnJobEnd(batch, absl::CancelledError("gone"));
  const ParsedScrape scrape = Scrape();
  EXPECT_EQ(scrape.at(R"(gemmd_products_total{kernel="fast_f32"})"), 1001);
  EXPECT_EQ(scrape.at(R"(gemmd_jobs_total{dtype="f32",family="fast",outcome="OK"})"), 2);
  EXPECT_EQ(scrape.types.at("gemmd_products_total"), "counter");
}

TEST_F(MetricsTest, CountsTheProductsOfGroups) {
  JobReport group = FinishedJob();
  group.group = 64;
  metrics_.OnJobEnd(group, absl::OkStatus());
  EXPECT_EQ(Scrape().at(R"(gemmd_products_total{kernel="fast_f32"})"), 64);
}

TEST_F(MetricsTest, TellsWhetherABenchmarkRuns) {
  EXPECT_EQ(Scrape().at("gemmd_benchmark_running"), 0);
  metrics_.OnBenchmark(true);
  EXPECT_EQ(Scrape().at("gemmd_benchmark_running"), 1);
  metrics_.OnBenchmark(false);
  metrics_.OnRpcEnd("Benchmark", absl::StatusCode::kOk, absl::Seconds(1));
  const ParsedScrape scrape = Scrape();
  EXPECT_EQ(scrape.at("gemmd_benchmark_running"), 0);
  EXPECT_EQ(scrape.at(R"(gemmd_requests_total{method="Benchmark",outcome="OK"})"), 1);
}

TEST_F(MetricsTest, CountsWhatBecomesOfIdleTuning) {
  EXPECT_EQ(Scrape().at("gemmd_idle_tuning_running"), 0);
  metrics_.OnIdleTuning(true);
  EXPECT_EQ(Scrape().at("gemmd_idle_tuning_running"), 1);
  metrics_.OnIdleTuning(false);
  metrics_.OnIdleTuningProduct("interrupted");
  metrics_.OnIdleTuningProduct("tuned");
  metrics_.OnIdleTuningProduct("tuned");
  metrics_.OnIdleTuningUnwritten();
  const ParsedScrape scrape = Scrape();
  EXPECT_EQ(scrape.at("gemmd_idle_tuning_running"), 0);
  EXPECT_EQ(scrape.at(R"(gemmd_idle_tuning_products_total{outcome="tuned"})"), 2);
  EXPECT_EQ(scrape.at(R"(gemmd_idle_tuning_products_total{outcome="interrupted"})"), 1);
  EXPECT_EQ(scrape.at("gemmd_idle_tuning_unwritten_total"), 1);
}

TEST_F(MetricsTest, ARefusedJobHasNoKernelAndNoType) {
  metrics_.OnJobEnd(JobReport(), absl::ResourceExhaustedError("full"));
  const ParsedScrape scrape = Scrape();
  EXPECT_EQ(
      scrape.at(R"(gemmd_jobs_total{dtype="none",family="none",outcome="RESOURCE_EXHAUSTED"})"), 1);
  EXPECT_FALSE(scrape.samples.contains(R"(gemmd_flop_total{kernel="none"})"));
}

TEST_F(MetricsTest, CountsChecksByKernelDeviceAndResult) {
  JobReport report = FinishedJob();
  report.device = "cuda:1";
  metrics_.OnJobEnd(report, absl::OkStatus());  // not checked: not counted
  report.check.result = CheckResult::kPassed;
  metrics_.OnJobEnd(report, absl::OkStatus());
  report.check = {.result = CheckResult::kWrong, .failed_kernel = "slow"};
  metrics_.OnJobEnd(report, absl::OkStatus());
  report.check.result = CheckResult::kLost;
  metrics_.OnJobEnd(report, absl::DataLossError("wrong twice"));
  report.check = {.why_not = "alpha is 0"};
  metrics_.OnJobEnd(report, absl::OkStatus());
  const ParsedScrape scrape = Scrape();
  const std::string checks = R"(gemmd_result_checks_total{device="cuda:1",kernel=)";
  EXPECT_EQ(scrape.at(checks + R"("fast_f32",result="passed"})"), 1);
  EXPECT_EQ(scrape.at(checks + R"("slow",result="wrong"})"), 1);
  EXPECT_EQ(scrape.at(checks + R"("slow",result="lost"})"), 1);
  EXPECT_EQ(scrape.at(checks + R"("fast_f32",result="skipped"})"), 1);
  EXPECT_EQ(scrape.LabelValues("gemmd_result_checks_total", "result").size(), 4u);
}

TEST_F(MetricsTest, TextFromRequestsMakesNoSeries) {
  JobReport odd = FinishedJob();
  for (int i = 0; i < 100; ++i) {
    odd.kernel = "made_up_" + std::to_string(i);
    odd.check = {.result = CheckResult::kWrong, .failed_kernel = odd.kernel};
    metrics_.OnJobEnd(odd, absl::OkStatus());
    metrics_.OnRpcEnd("Method" + std::to_string(i), absl::StatusCode::kUnimplemented,
                      absl::Milliseconds(1));
  }
  const ParsedScrape scrape = Scrape();
  EXPECT_THAT(scrape.LabelValues("gemmd_products_total", "kernel"), ElementsAre("none"));
  EXPECT_THAT(scrape.LabelValues("gemmd_result_checks_total", "kernel"), ElementsAre("none"));
  EXPECT_EQ(scrape.at(R"(gemmd_jobs_total{dtype="f32",family="none",outcome="OK"})"), 100);
  EXPECT_EQ(scrape.at(R"(gemmd_requests_total{method="other",outcome="UNIMPLEMENTED"})"), 100);
}

TEST_F(MetricsTest, DeviceTimeIsCountedByCaller) {
  metrics_.OnDeviceTime("", absl::Milliseconds(2));
  metrics_.OnDeviceTime("alice", absl::Milliseconds(2));
  metrics_.OnDeviceTime("alice", absl::Milliseconds(2));
  metrics_.OnDeviceTime("bob", absl::ZeroDuration());
  const ParsedScrape scrape = Scrape();
  EXPECT_THAT(scrape.LabelValues("gemmd_caller_device_seconds_total", "caller"),
              UnorderedElementsAre("", "alice"));
  EXPECT_DOUBLE_EQ(scrape.at(R"(gemmd_caller_device_seconds_total{caller=""})"), 0.002);
  EXPECT_DOUBLE_EQ(scrape.at(R"(gemmd_caller_device_seconds_total{caller="alice"})"), 0.004);
}

// They take no time, and would make the others look quick.
TEST_F(MetricsTest, RefusedJobsHaveNoDuration) {
  metrics_.OnJobEnd(JobReport(), absl::ResourceExhaustedError("full"));
  JobReport ended = FinishedJob();
  ended.phases.total = absl::Seconds(1);
  metrics_.OnJobEnd(ended, absl::ResourceExhaustedError("full while it ran"));
  const ParsedScrape scrape = Scrape();
  EXPECT_EQ(scrape.at(R"(gemmd_job_duration_seconds_count{outcome="RESOURCE_EXHAUSTED"})"), 1);
  EXPECT_EQ(scrape.at(R"(gemmd_job_duration_seconds_sum{outcome="RESOURCE_EXHAUSTED"})"), 1);
  EXPECT_EQ(
      scrape.at(R"(gemmd_jobs_total{dtype="none",family="none",outcome="RESOURCE_EXHAUSTED"})"), 1);
}

TEST_F(MetricsTest, RefusalsAreCountedByWhoseBoundWasReached) {
  metrics_.OnJobEnd({}, BoundError({.bound = "max-queue-wait"}, "full"));
  metrics_.OnJobEnd({}, BoundError({.bound = "max-queue-wait"}, "full"));
  metrics_.OnTransferEnd(true, 0, absl::ZeroDuration(), BoundError({.bound = "store-bytes"}, "x"));
  metrics_.OnJobEnd({}, BoundError({.bound = "jobs", .caller = "alice"}, "its own"));
  metrics_.OnJobEnd({}, absl::ResourceExhaustedError("of no bound"));
  const ParsedScrape scrape = Scrape();
  EXPECT_EQ(scrape.at(R"(gemmd_refusals_total{bound="max-queue-wait",subject="server"})"), 2);
  EXPECT_EQ(scrape.at(R"(gemmd_refusals_total{bound="store-bytes",subject="server"})"), 1);
  EXPECT_EQ(scrape.at(R"(gemmd_refusals_total{bound="jobs",subject="caller"})"), 1);
  EXPECT_EQ(scrape.at(R"(gemmd_caller_bounds_total{bound="jobs"})"), 1);
  EXPECT_EQ(scrape.at(R"(gemmd_refusals_total{bound="max-jobs",subject="server"})"), 0)
      << "a rate needs a first value";
}

TEST_F(MetricsTest, ACallThatWaitsForItsRateIsNotRefused) {
  metrics_.OnCallerBound("bytes-per-second");
  metrics_.OnCallerBound("streams");
  const ParsedScrape scrape = Scrape();
  EXPECT_EQ(scrape.at(R"(gemmd_refusals_total{bound="streams",subject="caller"})"), 1);
  EXPECT_EQ(scrape.at(R"(gemmd_caller_bounds_total{bound="bytes-per-second"})"), 1);
  EXPECT_EQ(scrape.LabelValues("gemmd_refusals_total", "bound").count("bytes-per-second"), 0u);
}

TEST_F(MetricsTest, ManyCallersShareOneSeries) {
  for (int i = 0; i < 1000; ++i) {
    metrics_.OnDeviceTime("caller" + std::to_string(i), absl::Seconds(1));
  }
  const ParsedScrape scrape = Scrape();
  EXPECT_EQ(scrape.LabelValues("gemmd_caller_device_seconds_total", "caller").size(), 65u);
  EXPECT_EQ(scrape.at(R"(gemmd_caller_device_seconds_total{caller="caller63"})"), 1);
  EXPECT_EQ(scrape.at(R"(gemmd_caller_device_seconds_total{caller="other callers"})"), 1000 - 64);
}

TEST_F(MetricsTest, JobDurationsAreHistogramsInSecondsByOutcome) {
  metrics_.OnJobEnd(FinishedJob(), absl::OkStatus());
  const ParsedScrape scrape = Scrape();
  const std::string ok = R"(outcome="OK"})";
  EXPECT_EQ(scrape.types.at("gemmd_job_duration_seconds"), "histogram");
  EXPECT_EQ(scrape.at("gemmd_job_duration_seconds_count{" + ok), 1);
  EXPECT_DOUBLE_EQ(scrape.at("gemmd_job_duration_seconds_sum{" + ok), 0.012);
  EXPECT_EQ(scrape.at(R"(gemmd_job_duration_seconds_bucket{le="0.01",)" + ok), 0);
  EXPECT_EQ(scrape.at(R"(gemmd_job_duration_seconds_bucket{le="0.025",)" + ok), 1);
  EXPECT_EQ(scrape.at(R"(gemmd_job_duration_seconds_bucket{le="+Inf",)" + ok), 1);
}

TEST_F(MetricsTest, PhasesCountTheJobsThatHadThem) {
  metrics_.OnJobEnd(FinishedJob(), absl::OkStatus());
  JobReport resident = FinishedJob();
  resident.phases.receive = absl::ZeroDuration();
  resident.phases.send = absl::ZeroDuration();
  metrics_.OnJobEnd(resident, absl::OkStatus());
  const ParsedScrape scrape = Scrape();
  EXPECT_THAT(scrape.LabelValues("gemmd_job_phase_seconds_count", "phase"),
              UnorderedElementsAre("receive", "queue", "host_to_device", "kernel", "device_to_host",
                                   "send"));
  EXPECT_EQ(scrape.at(R"(gemmd_job_phase_seconds_count{phase="receive"})"), 1);
  EXPECT_EQ(scrape.at(R"(gemmd_job_phase_seconds_count{phase="kernel"})"), 2);
  EXPECT_DOUBLE_EQ(scrape.at(R"(gemmd_job_phase_seconds_sum{phase="host_to_device"})"), 0.004);
  EXPECT_EQ(scrape.at(R"(gemmd_job_phase_seconds_bucket{le="5e-06",phase="queue"})"), 2);
}

TEST_F(MetricsTest, RatesOperationsAndBytesOfAJob) {
  metrics_.OnJobEnd(FinishedJob(), absl::OkStatus());
  metrics_.OnJobEnd(FinishedJob(), absl::OkStatus());
  const ParsedScrape scrape = Scrape();
  EXPECT_EQ(scrape.at(R"(gemmd_kernel_tflops_bucket{family="fast",le="1"})"), 0);
  EXPECT_EQ(scrape.at(R"(gemmd_kernel_tflops_bucket{family="fast",le="2.5"})"), 2);
  EXPECT_DOUBLE_EQ(scrape.at(R"(gemmd_kernel_tflops_sum{family="fast"})"), 4);
  EXPECT_EQ(scrape.at(R"(gemmd_flop_total{kernel="fast_f32"})"), 4e9);
  EXPECT_DOUBLE_EQ(scrape.at(R"(gemmd_kernel_seconds_total{kernel="fast_f32"})"), 0.002);
  EXPECT_EQ(scrape.at(R"(gemmd_payload_bytes_total{direction="in"})"), 6000);
  EXPECT_EQ(scrape.at(R"(gemmd_payload_bytes_total{direction="out"})"), 2000);
}

TEST_F(MetricsTest, CountsTransfersByDirectionAndOutcome) {
  metrics_.OnTransferEnd(true, 1 << 20, absl::Milliseconds(2), absl::OkStatus());
  metrics_.OnTransferEnd(true, 100, absl::Milliseconds(1), absl::DeadlineExceededError("late"));
  metrics_.OnTransferEnd(false, 7, absl::Microseconds(20), absl::OkStatus());
  const ParsedScrape scrape = Scrape();
  EXPECT_EQ(scrape.at(R"(gemmd_matrix_transfers_total{direction="in",outcome="OK"})"), 1);
  EXPECT_EQ(
      scrape.at(R"(gemmd_matrix_transfers_total{direction="in",outcome="DEADLINE_EXCEEDED"})"), 1);
  EXPECT_EQ(scrape.at(R"(gemmd_matrix_transfers_total{direction="out",outcome="OK"})"), 1);
  EXPECT_EQ(scrape.at(R"(gemmd_matrix_transfer_bytes_total{direction="in"})"), (1 << 20) + 100);
  EXPECT_EQ(scrape.at(R"(gemmd_matrix_transfer_bytes_total{direction="out"})"), 7);
  EXPECT_DOUBLE_EQ(scrape.at(R"(gemmd_matrix_transfer_duration_seconds_sum{direction="in"})"),
                   0.003);
}

TEST_F(MetricsTest, CountsAndTimesRpcsByMethod) {
  metrics_.OnRpcEnd("MultiplyUnary", absl::StatusCode::kOk, absl::Microseconds(80));
  metrics_.OnRpcEnd("MultiplyUnary", absl::StatusCode::kInvalidArgument, absl::Microseconds(30));
  const ParsedScrape scrape = Scrape();
  EXPECT_EQ(scrape.at(R"(gemmd_requests_total{method="MultiplyUnary",outcome="OK"})"), 1);
  EXPECT_EQ(scrape.at(R"(gemmd_requests_total{method="MultiplyUnary",outcome="INVALID_ARGUMENT"})"),
            1);
  const std::string bucket = R"(gemmd_request_duration_seconds_bucket{le=)";
  EXPECT_EQ(scrape.at(bucket + R"("5e-05",method="MultiplyUnary"})"), 1);
  EXPECT_EQ(scrape.at(bucket + R"("0.0001",method="MultiplyUnary"})"), 2);
}

TEST_F(MetricsTest, CountsStallsByMethodAndDirection) {
  metrics_.OnStall("MultiplyUnary", /*payload=*/true, 3);
  metrics_.OnStall("MultiplyUnary", /*payload=*/false, 1);
  metrics_.OnStall("MultiplyUnary", /*payload=*/true, 1);
  const ParsedScrape scrape = Scrape();
  EXPECT_EQ(scrape.at(R"(gemmd_stalls_total{direction="in",method="MultiplyUnary"})"), 4);
  EXPECT_EQ(scrape.at(R"(gemmd_stalls_total{direction="out",method="MultiplyUnary"})"), 1);
}

TEST_F(MetricsTest, CountsDroppedConnectionsByReason) {
  metrics_.OnDroppedConnection("resets");
  metrics_.OnDroppedConnection("resets");
  metrics_.OnDroppedConnection("unread");
  metrics_.OnDroppedConnection("frames");
  const ParsedScrape scrape = Scrape();
  EXPECT_EQ(scrape.at(R"(gemmd_connections_dropped_total{reason="resets"})"), 2);
  EXPECT_EQ(scrape.at(R"(gemmd_connections_dropped_total{reason="unread"})"), 1);
  EXPECT_EQ(scrape.at(R"(gemmd_connections_dropped_total{reason="frames"})"), 1);
}

TEST_F(MetricsTest, BuildInfoNamesTheBuild) {
  EXPECT_EQ(Scrape().at(R"(gemmd_build_info{commit="abc123",cuda="none",version="1.2.3"})"), 1);
}

TEST_F(MetricsTest, BucketsSpanWhatTheyShould) {
  const std::vector<double>& seconds = DurationBuckets();
  EXPECT_EQ(seconds.front(), 5e-6);
  EXPECT_EQ(seconds.back(), 10);
  for (size_t i = 1; i < seconds.size(); ++i) {
    const double step = seconds[i] / seconds[i - 1];
    EXPECT_TRUE(step > 1.99 && step < 2.51) << seconds[i - 1] << " to " << seconds[i];
  }
  EXPECT_EQ(TflopsBuckets().front(), 0.001);
  EXPECT_EQ(TflopsBuckets().back(), 2000);
  EXPECT_TRUE(std::is_sorted(TflopsBuckets().begin(), TflopsBuckets().end()));
}

TEST_F(MetricsTest, NoJobIsLostBetweenThreads) {
  constexpr int kThreads = 4;
  constexpr int kJobs = 5000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < kJobs; ++i) metrics_.OnJobEnd(FinishedJob(), absl::OkStatus());
    });
  }
  for (int i = 0; i < 20; ++i) EXPECT_THAT(metrics_.Scrape(), ::testing::Not(""));
  for (std::thread& thread : threads) thread.join();
  const ParsedScrape scrape = Scrape();
  EXPECT_EQ(scrape.at(R"(gemmd_jobs_total{dtype="f32",family="fast",outcome="OK"})"),
            kThreads * kJobs);
  EXPECT_EQ(scrape.at(R"(gemmd_job_phase_seconds_count{phase="send"})"), kThreads * kJobs);
  EXPECT_EQ(scrape.at(R"(gemmd_flop_total{kernel="fast_f32"})"), 2e9 * kThreads * kJobs);
}

// As many kernels as there are with CUDA, with names as long as the longest common ones.
TEST(MetricsSize, AScrapeStaysSmallAfterEveryKernelAndManyCallers) {
  std::vector<std::string> names;
  for (int i = 0; i < 330; ++i) names.push_back(absl::StrCat(std::string(40, 'k'), 100 + i));
  std::vector<gemm::Kernel> kernels(names.size());
  std::vector<const gemm::Kernel*> catalogue;
  const char* const families[] = {"simt", "wmma", "mma", "grouped", "hopper", "cublas", "cublaslt"};
  for (size_t i = 0; i < names.size(); ++i) {
    kernels[i].name = names[i];
    kernels[i].family = families[i % std::size(families)];
    catalogue.push_back(&kernels[i]);
  }
  MetricsOptions options = FakeMetricsOptions();
  options.catalogue = catalogue;
  Metrics metrics(options);
  for (size_t i = 0; i < names.size(); ++i) {
    JobReport job = FinishedJob();
    job.kernel = names[i];
    job.types.a = static_cast<gemm::DType>(i % 4);
    job.flops *= 1 + static_cast<double>(i) / 7;
    metrics.OnJobEnd(job, absl::OkStatus());
    metrics.OnJobEnd(job, absl::CancelledError("gone"));
    metrics.OnDeviceTime(absl::StrCat("caller-", i % 50), absl::Milliseconds(1.2345));
  }
  const std::string scrape = metrics.Scrape();
  EXPECT_LT(scrape.size(), 125'000u);  // a server's gauges and its methods come on top
  EXPECT_LT(std::count(scrape.begin(), scrape.end(), '\n'), 1600);
}

}  // namespace
}  // namespace gemmd
