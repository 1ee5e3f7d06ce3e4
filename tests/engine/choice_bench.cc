// How long the choice of a kernel takes with a full tuning table, by estimate and by rank, and how
// long a note in the log of traffic takes. docs/operations/tuning.md has its figures.
//
//   choice_bench [CHOICES]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "server/engine/core/traffic_log.h"
#include "server/engine/job/dispatcher.h"

namespace gemmd {
namespace {

constexpr gemm::DeviceCaps kHost{gemm::Target::kHost, 0};

gemm::Problem Random(std::mt19937_64& random, int64_t least, int64_t most) {
  std::uniform_int_distribution<int64_t> dimension(least, most);
  return {.m = dimension(random), .n = dimension(random), .k = dimension(random)};
}

// As many entries as a table may have, all of them of one group.
std::vector<gemm::Problem> Fill(gemm::TuningTable& table, const gemm::Machine& machine) {
  std::mt19937_64 random(1);
  std::vector<gemm::Problem> known;
  while (table.size() < gemm::kMaxTuningEntries) {
    known.push_back(Random(random, 1, 16384));
    if (!table.Put(machine, gemm::TunedProduct::Of(known.back()), {"host_reference", {}, 1}).ok()) {
      std::abort();
    }
  }
  return known;
}

std::string Percentiles(std::vector<double> micros) {
  std::sort(micros.begin(), micros.end());
  const auto at = [&](double share) {
    return micros[static_cast<size_t>(share * static_cast<double>(micros.size() - 1))];
  };
  return absl::StrFormat("p50 %7.2f us  p99 %7.2f us", at(0.5), at(0.99));
}

void Measure(const char* name, int choices, const PickSite& site,
             const std::function<gemm::Problem(int)>& problem_of, KernelChoices* made = nullptr) {
  std::vector<double> micros;
  int by_table = 0;
  for (int i = 0; i < choices; ++i) {
    const gemm::Problem problem = problem_of(i);
    const auto begin = std::chrono::steady_clock::now();
    const auto pick = PickKernel({}, problem, true, site, made);
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - begin;
    micros.push_back(taken.count());
    if (pick.ok() && pick->tuned.has_value()) ++by_table;
  }
  std::printf("%-36s %s  from the table %3.0f%%\n", name, Percentiles(std::move(micros)).c_str(),
              100.0 * by_table / choices);
}

void MeasureLog(const char* name, int notes, TrafficLog& log,
                const std::function<gemm::Problem(int)>& problem_of) {
  std::vector<double> micros;
  for (int i = 0; i < notes; ++i) {
    const gemm::Problem problem = problem_of(i);
    const auto begin = std::chrono::steady_clock::now();
    log.Add(gemm::TunedProduct::Of(problem), 1e-6);
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - begin;
    micros.push_back(taken.count());
  }
  std::printf("%-36s %s\n", name, Percentiles(std::move(micros)).c_str());
}

int Run(int choices) {
  const gemm::Machine machine{.device = "a device"};
  gemm::TuningTable table;
  const std::vector<gemm::Problem> known = Fill(table, machine);
  const TunedKernels tuned(table, machine, kHost);
  const PickSite site{.device = kHost, .tuned = &tuned};
  std::mt19937_64 random(2);
  Measure("by rank, without a table", choices, {.device = kHost},
          [&](int) { return Random(random, 1, 16384); });
  constexpr gemm::DeviceCaps kHopper{gemm::Target::kCuda, 90};
  Measure("by estimate, on a GPU (CUDA builds)", choices, {.device = kHopper}, [&](int) {
    gemm::Problem problem = Random(random, 1, 16384);
    problem.types = {gemm::DType::kF16, gemm::DType::kF16, gemm::DType::kF16, gemm::Compute::kF32};
    return problem;
  });
  Measure("a shape of the table", choices, site,
          [&](int) { return known[random() % known.size()]; });
  Measure("a new shape near one of the table", choices, site,
          [&](int) { return Random(random, 1, 16384); });
  Measure("a new shape far from all", choices, site,
          [&](int) { return Random(random, 1 << 24, 1 << 30); });
  KernelChoices made;
  std::vector<gemm::Problem> asked;
  for (size_t i = 0; i < KernelChoices::kMost; ++i) {
    asked.push_back(Random(random, 1, 16384));
    if (!PickKernel({}, asked.back(), true, site, &made).ok()) std::abort();
  }
  Measure(
      "a shape that was asked for before", choices, site,
      [&](int) { return asked[random() % asked.size()]; }, &made);
  TrafficLog log;
  MeasureLog("the log of traffic, its products", choices, log,
             [&](int i) { return known[static_cast<size_t>(i) % kMaxTrafficEntries]; });
  MeasureLog("the log, full, always new products", choices, log,
             [&](int) { return Random(random, 1, 16384); });
  return 0;
}

}  // namespace
}  // namespace gemmd

int main(int argc, char** argv) {
  const int choices = argc > 1 ? std::atoi(argv[1]) : 100000;
  if (choices < 1) {
    std::fputs("choice_bench: CHOICES must be a number above 0\n", stderr);
    return 2;
  }
  return gemmd::Run(choices);
}
