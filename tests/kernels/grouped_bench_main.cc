// Measures groups by m, as in layers that are mixtures of experts. It compares the rows of the
// catalogue that take a group in one launch with cuBLAS's grouped product and with a cuBLASLt call
// for each product.
//
//   grouped_bench --seconds 3
//   grouped_bench --rows hopper_bf16_128x256x64_s4_coop2 --skews mild --layouts nk
//
// Everything is measured in turns, and figures are medians. Operands are far larger than the L2.
// Exit code 1 if a result is wrong.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gemm/catalogue.h"
#include "gemm/generate.h"
#include "gemm/libraries.h"
#include "gemm/run.h"
#include "kernels/core/cuda_status.h"
#include "tests/kernels/grouped_bench_baselines.h"
#include "tests/kernels/grouped_bench_check.h"

namespace gemm::testing {
namespace {

struct BenchOptions {
  int64_t products = 128;
  int64_t rows_in_all = 65536;
  int64_t n = 1536;
  int64_t k = 2048;
  std::string type = "bf16";
  std::vector<std::string> skews = {"even", "mild", "extreme"};
  std::vector<std::string> layouts = {"nk", "kn"};
  std::vector<std::string> rows;  // all
  double seconds = 2;
  uint64_t seed = 1;
};

// Rows in proportion to the weights, `all` together; the largest product gets what rounding leaves.
std::vector<int64_t> Shares(const std::vector<double>& weights, int64_t all) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int64_t> rows;
  for (const double weight : weights) {
    rows.push_back(static_cast<int64_t>(weight / sum * static_cast<double>(all)));
  }
  *std::max_element(rows.begin(), rows.end()) +=
      all - std::accumulate(rows.begin(), rows.end(), int64_t{0});
  return rows;
}

// even: all alike. mild: lognormal with a sigma of 0.5. extreme: Zipf with an exponent of 1.6, in
// any order, and an eighth of the products has no rows.
std::vector<int64_t> Extents(const std::string& skew, const BenchOptions& options) {
  std::mt19937_64 random(options.seed);
  std::vector<double> weights;
  std::lognormal_distribution<double> lognormal(0, 0.5);
  for (int64_t i = 0; i < options.products; ++i) {
    const double rank = static_cast<double>(i + 1);
    const bool none = i >= options.products - options.products / 8;
    weights.push_back(skew == "even"   ? 1
                      : skew == "mild" ? lognormal(random)
                      : none           ? 0
                                       : std::pow(rank, -1.6));
  }
  if (skew == "extreme") std::shuffle(weights.begin(), weights.end(), random);
  return Shares(weights, options.rows_in_all);
}

// Normal, from a seed. Rows of `cols` elements without padding.
void* Normal(int64_t rows, int64_t cols, DType type, uint64_t seed, cudaStream_t stream) {
  void* data = nullptr;
  const int64_t pitch = PitchBytes(cols, type);
  Must(CudaStatus(cudaMalloc(&data, static_cast<size_t>(rows * pitch)), "cudaMalloc"));
  Must(GenerateCuda({seed, Distribution::kNormal, 0, 1}, {data, type, rows, cols, pitch, false},
                    stream));
  return data;
}

// The row's launch, or its loop over the products.
GroupCandidate OfRow(const Kernel& kernel, const Problem& group, const Operands& operands,
                     Libraries* libraries) {
  const size_t bytes = WorkspaceBytes(kernel, group);
  void* workspace = nullptr;
  if (bytes > 0) Must(CudaStatus(cudaMalloc(&workspace, bytes), "cudaMalloc"));
  const auto enqueue = [&kernel, &group, &operands, libraries, workspace,
                        bytes](cudaStream_t stream) {
    Must(RunProduct(kernel, {.problem = group,
                             .operands = operands,
                             .workspace = {workspace, bytes},
                             .params = ResolveParams(kernel, {}).value(),
                             .stream = stream,
                             .libraries = libraries}));
  };
  return {std::string(kernel.name), enqueue};
}

// The form of a baseline that is the fastest.
GroupCandidate Fastest(std::vector<GroupCandidate> forms, cudaStream_t stream) {
  constexpr int kRuns = 6;
  std::vector<double> micros;
  for (const GroupCandidate& form : forms) {
    micros.push_back(QuickMicroseconds(form.enqueue, stream, kRuns));
    std::cout << absl::StrFormat("  tried %-36s %9.1f us\n", form.name, micros.back());
  }
  return std::move(
      forms[static_cast<size_t>(std::min_element(micros.begin(), micros.end()) - micros.begin())]);
}

// Medians, in microseconds. The GPU has work before each launch that is measured, so that it does
// not wait for the host.
std::vector<double> MeasureInTurns(const std::vector<GroupCandidate>& candidates, double seconds,
                                   cudaStream_t stream) {
  std::vector<cudaEvent_t> events(2 * candidates.size());
  for (cudaEvent_t& event : events) Must(CudaStatus(cudaEventCreate(&event), "cudaEventCreate"));
  std::vector<std::vector<float>> samples(candidates.size());
  for (double spent = 0; spent < seconds * 1e3;) {
    candidates.front().enqueue(stream);
    for (size_t i = 0; i < candidates.size(); ++i) {
      Must(CudaStatus(cudaEventRecord(events[2 * i], stream), "cudaEventRecord"));
      candidates[i].enqueue(stream);
      Must(CudaStatus(cudaEventRecord(events[2 * i + 1], stream), "cudaEventRecord"));
    }
    Must(CudaStatus(cudaStreamSynchronize(stream), "a measurement"));
    for (size_t i = 0; i < candidates.size(); ++i) {
      float milliseconds = 0;
      Must(CudaStatus(cudaEventElapsedTime(&milliseconds, events[2 * i], events[2 * i + 1]),
                      "cudaEventElapsedTime"));
      samples[i].push_back(milliseconds);
      spent += milliseconds;
    }
  }
  for (const cudaEvent_t event : events) cudaEventDestroy(event);
  std::vector<double> medians;
  for (std::vector<float>& of_one : samples) {
    std::nth_element(of_one.begin(), of_one.begin() + of_one.size() / 2, of_one.end());
    medians.push_back(of_one[of_one.size() / 2] * 1e3);
  }
  return medians;
}

bool Wanted(const Kernel& kernel, const Types& types, const BenchOptions& options) {
  if (!kernel.groups || !Takes(kernel, types)) return false;
  return options.rows.empty() ||
         std::find(options.rows.begin(), options.rows.end(), kernel.name) != options.rows.end();
}

// The rows that take groups. The last one is the best by estimate again, but launched product by
// product, as RunProduct does for rows that take none.
struct Rows {
  std::vector<Kernel> kernels;
  size_t by_estimate = 0;
};

Rows RowsFor(const Problem& group, const BenchOptions& options) {
  Rows rows;
  std::vector<double> seconds;
  for (const Kernel* kernel : Catalogue()) {
    if (!Wanted(*kernel, group.types, options)) continue;
    rows.kernels.push_back(*kernel);
    seconds.push_back(kernel->estimated_seconds(group));
  }
  if (rows.kernels.empty()) Must(absl::NotFoundError("no such row takes groups of these types"));
  rows.by_estimate =
      static_cast<size_t>(std::min_element(seconds.begin(), seconds.end()) - seconds.begin());
  Kernel apart = rows.kernels[rows.by_estimate];
  apart.groups = false;
  rows.kernels.push_back(apart);
  return rows;
}

void PrintTable(const std::vector<GroupCandidate>& candidates, const std::vector<double>& micros,
                const Rows& rows, const Problem& group) {
  const double baseline = std::min(micros[0], micros[1]);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const std::string note = i < 2                          ? "baseline"
                             : i == 2 + rows.by_estimate    ? "by estimate"
                             : i == 1 + rows.kernels.size() ? "one by one"
                                                            : "";
    std::cout << absl::StrFormat("%-44s %9.1f us %7.1f TFLOPS  ratio %5.3f  %s\n",
                                 candidates[i].name, micros[i], Flops(group) / micros[i] * 1e-6,
                                 baseline / micros[i], note);
  }
  const auto best = std::min_element(micros.begin() + 2, micros.end() - 1) - micros.begin();
  std::cout << absl::StrFormat("best: %s, ratio %.3f\n\n",
                               candidates[static_cast<size_t>(best)].name,
                               baseline / micros[static_cast<size_t>(best)]);
}

// Whether all results were right.
bool Compare(const Problem& group, const Operands& operands, const BenchOptions& options,
             cudaStream_t stream, Libraries* libraries) {
  const Rows rows = RowsFor(group, options);
  std::vector<GroupCandidate> candidates;
  candidates.push_back(Fastest(CublasGrouped(group, operands), stream));
  candidates.push_back(Fastest(CublasLtOneByOne(group, operands, stream), stream));
  for (const Kernel& kernel : rows.kernels) {
    candidates.push_back(OfRow(kernel, group, operands, libraries));
  }
  const std::string wrong = CheckResults(candidates, group, operands, stream);
  std::cout << wrong;
  PrintTable(candidates, MeasureInTurns(candidates, options.seconds, stream), rows, group);
  return wrong.empty();
}

int Run(const BenchOptions& options) {
  cudaStream_t stream = nullptr;
  Must(CudaStatus(cudaStreamCreate(&stream), "cudaStreamCreate"));
  auto libraries = CreateLibraries(stream);
  Must(libraries.status());
  const DType type = options.type == "f16" ? DType::kF16 : DType::kBF16;
  const int64_t n = options.n, k = options.k, m = options.rows_in_all;
  void* const a = Normal(m, k, type, options.seed, stream);
  void* const b = Normal(options.products * n, k, type, options.seed + 1, stream);
  void* const d = Normal(m, n, type, options.seed + 2, stream);
  bool right = true;
  for (const std::string& skew : options.skews) {
    const std::vector<int64_t> extents = Extents(skew, options);
    for (const std::string& layout : options.layouts) {
      const bool trans_b = layout == "nk";
      const Problem group{.m = m,
                          .n = n,
                          .k = k,
                          .types = {type, type, type, Compute::kF32},
                          .trans_b = trans_b,
                          .grouped = GroupedBy::kM,
                          .extents = extents};
      const Operands operands{
          .a = a, .lda = k, .b = b, .ldb = trans_b ? k : n, .d = d, .ldd = n, .stride_b = n * k};
      std::cout << absl::StrFormat(
          "%s, B %s: %d products, %d rows (%d to %d, %d without), n %d, k %d, %s\n", skew,
          trans_b ? "n x k" : "k x n", extents.size(), m,
          *std::min_element(extents.begin(), extents.end()),
          *std::max_element(extents.begin(), extents.end()),
          std::count(extents.begin(), extents.end(), 0), n, k, options.type);
      right = Compare(group, operands, options, stream, libraries->get()) && right;
    }
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace gemm::testing

int main(int argc, char** argv) {
  gemm::testing::BenchOptions options;
  CLI::App app("Measures products that differ in m, in one launch");
  app.add_option("--products", options.products, "Experts")->check(CLI::Range(1, 4096));
  app.add_option("--rows-in-all", options.rows_in_all, "Of all products")
      ->check(CLI::Range(1, 1 << 24));
  app.add_option("--n", options.n, "A multiple of 8")->check(CLI::Range(8, 1 << 20));
  app.add_option("--k", options.k, "A multiple of 8")->check(CLI::Range(8, 1 << 20));
  app.add_option("--type", options.type, "Of all matrices")->check(CLI::IsMember({"bf16", "f16"}));
  app.add_option("--skews", options.skews, "How rows are spread")
      ->delimiter(',')
      ->check(CLI::IsMember({"even", "mild", "extreme"}));
  app.add_option("--layouts", options.layouts, "How B is stored: n x k, k x n")
      ->delimiter(',')
      ->check(CLI::IsMember({"nk", "kn"}));
  app.add_option("--rows", options.rows, "Names of kernels. Default: all that take groups")
      ->delimiter(',');
  app.add_option("--seconds", options.seconds, "Of measurement for each skew and layout");
  app.add_option("--seed", options.seed, "Of operands and skews");
  CLI11_PARSE(app, argc, argv);
  if (options.n % 8 != 0 || options.k % 8 != 0) {
    std::cerr << "--n is " << options.n << " and --k " << options.k
              << "; both must be multiples of 8\n";
    return 2;
  }
  return gemm::testing::Run(options);
}
