#include "tests/kernels/grouped_bench_check.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>

#include "absl/strings/str_format.h"
#include "gemm/reference.h"
#include "kernels/core/cuda_status.h"

namespace gemm::testing {
namespace {

// Some rows of a product, as a product of their own on the host.
struct Sample {
  int64_t index = 0;          // of the product
  std::vector<int64_t> rows;  // of D
  Problem problem;
  std::vector<std::byte> a, b;
};

std::vector<std::byte> FromDevice(const void* data, int64_t first, int64_t count, DType type) {
  const auto size = static_cast<int64_t>(SizeOf(type));
  std::vector<std::byte> bytes(static_cast<size_t>(count * size));
  Must(CudaStatus(cudaMemcpy(bytes.data(), static_cast<const std::byte*>(data) + first * size,
                             bytes.size(), cudaMemcpyDeviceToHost),
                  "copy to the host"));
  return bytes;
}

std::set<int64_t> SampledProducts(absl::Span<const int64_t> extents) {
  constexpr int64_t kSampled = 6;
  std::vector<int64_t> with_rows;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] > 0) with_rows.push_back(static_cast<int64_t>(i));
  }
  const auto fewer = [&extents](int64_t x, int64_t y) {
    return extents[static_cast<size_t>(x)] < extents[static_cast<size_t>(y)];
  };
  std::set<int64_t> sampled = {*std::min_element(with_rows.begin(), with_rows.end(), fewer),
                               *std::max_element(with_rows.begin(), with_rows.end(), fewer)};
  const auto count = static_cast<int64_t>(with_rows.size());
  for (int64_t i = 0; i < kSampled; ++i) {
    sampled.insert(with_rows[static_cast<size_t>(i * (count - 1) / (kSampled - 1))]);
  }
  return sampled;
}

Sample MakeSample(const Problem& group, const Operands& operands, int64_t index, int64_t first) {
  const int64_t extent = group.extents[static_cast<size_t>(index)];
  const std::set<int64_t> rows = {first, first + extent / 2, first + extent - 1};
  Sample sample{.index = index,
                .rows = {rows.begin(), rows.end()},
                .problem = ProductOfGroup(group, {}, index, first).problem};
  sample.problem.m = static_cast<int64_t>(rows.size());
  for (const int64_t row : rows) {
    const auto line = FromDevice(operands.a, row * operands.lda, group.k, group.types.a);
    sample.a.insert(sample.a.end(), line.begin(), line.end());
  }
  sample.b = FromDevice(operands.b, index * operands.stride_b, group.n * group.k, group.types.b);
  return sample;
}

// D's elements of a sample, row by row.
std::vector<double> ElementsOf(const Sample& sample, const Operands& operands) {
  std::vector<double> elements;
  const Problem& p = sample.problem;
  for (const int64_t row : sample.rows) {
    const auto bytes = FromDevice(operands.d, row * operands.ldd, p.n, p.types.d);
    for (int64_t j = 0; j < p.n; ++j) elements.push_back(LoadElement(bytes.data(), j, p.types.d));
  }
  return elements;
}

// The largest error, as a share of the bound, of some columns.
double WorstRatio(const Sample& sample, const std::vector<double>& elements) {
  constexpr int64_t kEvery = 97;
  const Problem& p = sample.problem;
  const Operands host{
      .a = sample.a.data(), .lda = p.k, .b = sample.b.data(), .ldb = p.trans_b ? p.k : p.n};
  ExpectedElements expected(p, host, Elements::kDrawn);
  double worst = 0;
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; j += kEvery) {
      const Expected one = expected.At(i, j);
      const double error = std::abs(elements[static_cast<size_t>(i * p.n + j)] - one.value);
      worst = std::max(worst, std::isnan(error) ? HUGE_VAL : error / one.tolerance);
    }
  }
  return worst;
}

// The largest difference from another result, as a share of the effect of two roundings to the
// 16-bit type and of the order of the sums.
double WorstDifference(const std::vector<double>& elements, const std::vector<double>& others,
                       const Problem& p) {
  const double unit = p.types.d == DType::kBF16 ? 0x1p-8 : 0x1p-11;
  double worst = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    const double bound =
        2 * unit * std::abs(others[i]) + 0x1p-10 * std::sqrt(static_cast<double>(p.k));
    const double difference = std::abs(elements[i] - others[i]);
    worst = std::max(worst, std::isnan(difference) ? HUGE_VAL : difference / bound);
  }
  return worst;
}

}  // namespace

std::string CheckResults(const std::vector<GroupCandidate>& candidates, const Problem& group,
                         const Operands& operands, cudaStream_t stream) {
  std::vector<Sample> samples;
  const std::set<int64_t> sampled = SampledProducts(group.extents);
  int64_t first = 0;
  for (size_t i = 0; i < group.extents.size(); ++i) {
    if (sampled.contains(static_cast<int64_t>(i))) {
      samples.push_back(MakeSample(group, operands, static_cast<int64_t>(i), first));
    }
    first += group.extents[i];
  }
  const auto bytes = static_cast<size_t>(group.m * operands.ldd) * SizeOf(group.types.d);
  std::vector<std::vector<double>> others(samples.size());
  std::string wrong;
  for (const GroupCandidate& candidate : candidates) {
    Must(CudaStatus(cudaMemsetAsync(operands.d, 0xFF, bytes, stream), "cudaMemsetAsync"));  // NaN
    candidate.enqueue(stream);
    Must(CudaStatus(cudaStreamSynchronize(stream), candidate.name));
    for (size_t i = 0; i < samples.size(); ++i) {
      const std::vector<double> elements = ElementsOf(samples[i], operands);
      if (others[i].empty()) others[i] = elements;
      const double ratio = WorstRatio(samples[i], elements);
      const double difference = WorstDifference(elements, others[i], group);
      if (ratio <= 1 && difference <= 1) continue;
      absl::StrAppendFormat(&wrong,
                            "WRONG: %s, product %d: %.3g of the bound, differs from %s by %.3g of "
                            "what roundings make\n",
                            candidate.name, samples[i].index, ratio, candidates.front().name,
                            difference);
      break;
    }
  }
  return wrong;
}

}  // namespace gemm::testing
