// The mean error of rows with fp8 operands, against double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/fp8_sums.h"
#include "tests/kernels/gpu.h"
#include "tests/kernels/product_case.h"

namespace gemm::testing {
namespace {

bool HasFp8Sums(const Types& types) { return IsFp8(types.a) && types.compute == Compute::kF32; }

std::vector<const Kernel*> Fp8Kernels() {
  std::vector<const Kernel*> kernels;
  for (const Kernel* kernel : Catalogue()) {
    const bool fp8 = std::any_of(kernel->types.begin(), kernel->types.end(), HasFp8Sums);
    if (kernel->target == Target::kCuda && fp8) kernels.push_back(kernel);
  }
  return kernels;
}

// Of the row's types with fp8 operands, those with the most accurate D.
Types WidestOf(const Kernel& kernel) {
  Types widest;
  double least = 1;
  for (const Types& types : kernel.types) {
    if (!HasFp8Sums(types) || UnitRoundoff(types.d) >= least) continue;
    widest = types;
    least = UnitRoundoff(types.d);
  }
  return widest;
}

class GpuFp8 : public GpuTest, public ::testing::WithParamInterface<const Kernel*> {};

// A row that never promotes errs by 5 times as much at this k. So does none that the bound of its
// elements, or a product of integers, finds.
TEST_P(GpuFp8, SumsArePromoted) {
  const Kernel& kernel = *GetParam();
  const absl::Status here = CheckDevice(kernel, Gpu::Get()->caps());
  if (!here.ok()) GTEST_SKIP() << "skipped: " << here.message();
  const Types types = WidestOf(kernel);
  ProductData data({.problem = {.m = 128, .n = 256, .k = 16384, .types = types, .trans_b = true}});
  const ProductData exact = InF64OnGpu(data, [](double x) { return x; });
  ASSERT_EQ(RunOnGpu(kernel, data, Defaults(kernel), 0), absl::OkStatus());
  double errors = 0, sums = 0;
  for (int64_t i = 0; i < data.product.problem.m; ++i) {
    for (int64_t j = 0; j < data.product.problem.n; ++j) {
      const double sum = exact.d.At(i, j);
      errors += std::pow(data.d.At(i, j) - sum, 2);
      sums += sum * sum;
    }
  }
  const double error = std::sqrt(errors / sums);
  printf("%-50s %.2e\n", std::string(kernel.name).c_str(), error);
  EXPECT_LT(error, kLargestFp8Error + UnitRoundoff(types.d));
}

INSTANTIATE_TEST_SUITE_P(Rows, GpuFp8, ::testing::ValuesIn(Fp8Kernels()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace gemm::testing
