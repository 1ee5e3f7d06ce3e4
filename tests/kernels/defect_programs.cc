#include "tests/kernels/defect_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/bench/result/row.h"
#include "kernels/bench/spec/rules.h"

namespace gemm::testing {
namespace {

namespace client = gemmd::client;

client::DataType ToClient(DType type) {
  switch (type) {
    case DType::kF64:
      return client::kF64;
    case DType::kF32:
      return client::kF32;
    case DType::kF16:
      return client::kF16;
    case DType::kBF16:
      return client::kBF16;
    case DType::kE4M3:
      return client::kF8E4M3;
    case DType::kE5M2:
      return client::kF8E5M2;
    case DType::kS8:
      return client::kS8;
    case DType::kS32:
      return client::kS32;
  }
  return client::kF32;
}

client::ComputeMode ToClient(Compute compute) {
  switch (compute) {
    case Compute::kF64:
      return client::kComputeF64;
    case Compute::kTF32:
      return client::kComputeTF32;
    case Compute::kF16:
      return client::kComputeF16;
    case Compute::kF32x3:
      return client::kComputeF32x3;
    case Compute::kS32:
      return client::kComputeS32;
    default:
      return client::kComputeF32;
  }
}

client::HostMatrix Dense(const GuardedMatrix& matrix, int64_t rows, int64_t cols) {
  auto dense =
      client::HostMatrix::Allocate({.rows = rows, .cols = cols, .dtype = ToClient(matrix.type())});
  if (!dense.ok()) return {};
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) dense->Set(i, j, matrix.At(i, j));
  }
  return *std::move(dense);
}

}  // namespace

GemmctlJudge::GemmctlJudge(const Product& product, Elements known)
    : problem_(product.problem()),
      a_(Dense(product.data().a, problem_.m, problem_.k)),
      b_(Dense(product.data().b, problem_.k, problem_.n)),
      c_(Dense(product.data().c, problem_.m, problem_.n)),
      bias_(Dense(product.data().bias, 1, problem_.n)),
      known_(known) {}

double GemmctlJudge::WorstRatio(const std::vector<std::byte>& result) const {
  constexpr int64_t kSamples = 4096;  // the default: all
  const client::Product product = {.a = a_.view(),
                                   .b = b_.view(),
                                   .c = c_.view(),
                                   .bias = bias_.view(),
                                   .alpha = problem_.alpha,
                                   .beta = problem_.beta};
  const gemmd::ctl::HostOperands operands = {
      .known = known_, .a = a_.view(), .b = b_.view(), .c = c_.view(), .bias = bias_.view()};
  const client::Shape shape = {
      .rows = problem_.m, .cols = problem_.n, .dtype = ToClient(problem_.types.d)};
  const auto agreement =
      gemmd::ctl::CheckProduct(product, operands, ToClient(problem_.types.compute),
                               client::ViewOf(shape, result.data()), kSamples, /*seed=*/1);
  return agreement.ok() ? agreement->worst_ratio : std::numeric_limits<double>::quiet_NaN();
}

BenchJudge::BenchJudge(const Product& drawn, const Product& signs) {
  Prepare(drawn, Elements::kDrawn, drawn_);
  Prepare(signs, Elements::kExact, signs_);
}

void BenchJudge::Prepare(const Product& product, Elements elements, Checked& checked) {
  checked.d = ResultOf(product, nullptr);
  Operands operands = product.data().ForReference();
  operands.d = checked.d.data();
  operands.ldd = kDefectSize;
  const absl::Status prepared = checked.oracle.Prepare(
      *backend_, product.problem(), operands, elements, bench::ComparisonRules().checked_lines,
      [] { return absl::OkStatus(); });
  EXPECT_TRUE(prepared.ok()) << prepared;
}

bench::SampledError BenchJudge::Compare(const std::vector<std::byte>& result, Checked& checked) {
  std::copy(result.begin(), result.end(), checked.d.begin());
  const auto error = checked.oracle.Compare(*backend_);
  EXPECT_TRUE(error.ok()) << error.status();
  return error.value_or(bench::SampledError());
}

bool BenchJudge::IsRight(const std::vector<std::byte>& drawn, const std::vector<std::byte>& signs) {
  bench::Row row = {.error = Compare(drawn, drawn_)};
  row.error.TakeExact(Compare(signs, signs_));
  return row.right();
}

}  // namespace gemm::testing
