// Integer products on the GPU, with the sums that the cases of every row leave out: those that
// wrap.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/kernels/gpu.h"
#include "tests/kernels/s8_products.h"

namespace gemm::testing {
namespace {

std::vector<const Kernel*> S8Kernels() {
  std::vector<const Kernel*> kernels;
  for (const Kernel* kernel : Catalogue()) {
    if (kernel->target == Target::kCuda && Takes(*kernel, kS8)) kernels.push_back(kernel);
  }
  return kernels;
}

class GpuS8 : public GpuTest, public ::testing::WithParamInterface<const Kernel*> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const absl::Status status = CheckDevice(kernel(), Gpu::Get()->caps());
    if (!status.ok()) GTEST_SKIP() << "skipped: " << status.message();
  }

  const Kernel& kernel() const { return *GetParam(); }

  void Check(const ProductData& data) const {
    const Runner run = [](const Kernel& row, ProductData& product) {
      return RunOnGpu(row, product, Defaults(row), 16);
    };
    EXPECT_EQ(CheckIntegers(kernel(), data, run), "") << data.product;
  }
};

TEST_P(GpuS8, AccumulatorsWrap) {
  for (const ProductData& data : ProductsThatWrap()) Check(data);
}

TEST_P(GpuS8, AccumulatorsOfFloatsWrapBeforeTheyAreRounded) {
  for (ProductData& data : ProductsThatWrap()) {
    ProductCase product = data.product;
    product.problem.types.d = DType::kF32;
    ProductData floats(product);
    floats.a = data.a;
    floats.b = data.b;
    Check(floats);
  }
}

// With whole runs of 16 bytes in the rows of D, so that tiles leave by TMA, and without.
TEST_P(GpuS8, AreThoseOf64BitIntegersCutTo32) {
  std::mt19937_64 random(5);
  std::uniform_int_distribution<int64_t> dim(1, 300);
  for (int round = 0; round < 40; ++round) {
    const int64_t n = round % 2 == 0 ? 4 * dim(random) : dim(random);
    ProductCase product = RandomCase(kS8, dim(random), n, dim(random), random);
    if (round % 4 == 0) {
      product.problem.beta = 0;
      product.problem.bias = BiasAxis::kNone;
      product.problem.activation = Activation::kNone;
      product.c_is_d = false;
    }
    Check(ProductData(product));
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, GpuS8, ::testing::ValuesIn(S8Kernels()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace gemm::testing
