// Prints what Metrics::OnJobEnd costs, with one thread and with two.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "tests/telemetry/fake_catalogue.h"

namespace gemmd {
namespace {

constexpr int kJobs = 200000;
constexpr int kRounds = 5;

JobReport FinishedJob() {
  JobReport report;
  report.kernel = "fast_f32";
  report.types.a = gemm::DType::kF32;
  const auto each = absl::Microseconds(30);
  report.phases = {each, each, each, each, each, each, 6 * each};
  report.bytes_in = report.bytes_out = 1 << 20;
  report.flops = 1e9;
  return report;
}

// Nanoseconds of a call, as its caller sees them.
double NanosecondsPerJob(Metrics& metrics, int thread_count) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&metrics] {
      const JobReport report = FinishedJob();
      for (int i = 0; i < kJobs; ++i) metrics.OnJobEnd(report, absl::OkStatus());
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / kJobs;
}

void Run(int thread_count) {
  Metrics metrics(FakeMetricsOptions());
  std::vector<double> rounds;
  for (int i = 0; i < kRounds; ++i) rounds.push_back(NanosecondsPerJob(metrics, thread_count));
  std::sort(rounds.begin(), rounds.end());
  std::printf("%d thread%s: median %.0f ns a job (%.0f to %.0f)\n", thread_count,
              thread_count == 1 ? "" : "s", rounds[kRounds / 2], rounds.front(), rounds.back());
}

}  // namespace
}  // namespace gemmd

int main() {
  gemmd::Run(1);
  gemmd::Run(2);
}
