// Parts that the kernels of the GPU need: the generator and the vendor's libraries.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "gemm/kernel.h"
#include "gemm/machine.h"
#include "kernels/blas/libraries.h"
#include "kernels/blas/lt_plan.h"
#include "kernels/blas/lt_product.h"
#include "tests/kernels/gpu.h"
#include "tests/kernels/product_case.h"

namespace gemm::testing {
namespace {

using GpuCaps = GpuTest;
using GpuGenerator = GpuTest;

// CMake refuses a build with code for sm_90 and none for sm_90a.
TEST_F(GpuCaps, AHopperTakesTheCodeForIt) {
  const DeviceCaps caps = Gpu::Get()->caps();
  if (caps.capability != 90) GTEST_SKIP() << "skipped: no GPU of compute capability 9.0";
  EXPECT_EQ(caps.code, DeviceCode::kSm90a);
}

TEST_F(GpuCaps, OfADeviceThatThereIsNotAreAnError) {
  EXPECT_FALSE(CudaCaps(4096).ok());
  EXPECT_TRUE(CudaCaps(0).ok()) << "the error before is not seen";
}

TEST_F(GpuGenerator, SameBitsAsTheHost) {
  Gpu& gpu = *Gpu::Get();
  const GeneratorSpec specs[] = {{17, Distribution::kUniform, -1, 3},
                                 {~uint64_t{0}, Distribution::kNormal, 0.5, 2}};
  for (const DType type :
       {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2}) {
    for (const GeneratorSpec& spec : specs) {
      for (const bool column_major : {false, true}) {
        GuardedMatrix host(1031, 517, type, 48);
        // The lines of a column-major matrix are its columns.
        const auto target = [&](void* data) {
          GeneratorTarget t = host.TargetAt(data);
          if (column_major) std::swap(t.rows, t.cols);
          t.column_major = column_major;
          return t;
        };
        GuardedMatrix device = host;
        ASSERT_EQ(GenerateHost(spec, target(host.data())), absl::OkStatus());
        gpu.Reset();
        std::byte* const data = gpu.Upload(device.bytes(), 16);
        ASSERT_EQ(GenerateCuda(spec, target(data + GuardedMatrix::kBand), gpu.stream()),
                  absl::OkStatus());
        gpu.Download(data, device.bytes());
        ASSERT_EQ(gpu.Synchronize(), absl::OkStatus());
        EXPECT_TRUE(device.bytes() == host.bytes())
            << Name(type) << (column_major ? " column-major" : " row-major");
        EXPECT_TRUE(device.GuardIntact());
      }
    }
  }
}

TEST_F(GpuGenerator, OtherTypesAreUnimplemented) {
  const absl::Status status =
      GenerateCuda({}, {nullptr, DType::kS32, 1, 1, 16, false}, Gpu::Get()->stream());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
}

using GpuLibraries = GpuTest;

// Scalars are f32 where accumulators are in f16, so a factor that f16 cannot hold is no error.
TEST_F(GpuLibraries, AFactorBeyondF16IsAppliedInF32) {
  for (const char* name : {"cublas_f16acc16", "cublaslt_f16acc16"}) {
    const Kernel& kernel = **FindKernel(name);
    ProductCase product;
    product.problem = {.m = 8, .n = 8, .k = 8, .types = kernel.types[0], .alpha = 1e6};
    EXPECT_EQ(CheckOnGpu(kernel, product, Defaults(kernel)), "") << name;
  }
}

// More problems than the cache of plans holds, then the first ones again.
TEST_F(GpuLibraries, PlansComeBackAfterTheyWereForgotten) {
  const Kernel& kernel = **FindKernel("cublaslt_f32");
  std::mt19937_64 random(14);
  std::vector<ProductCase> products;
  for (int64_t m = 1; m <= 300; ++m) {
    products.push_back(RandomCase(kernel.types[0], m, 9, 10, random));
  }
  for (int64_t m = 1; m <= 20; ++m) products.push_back(products[static_cast<size_t>(m - 1)]);
  for (const ProductCase& product : products) {
    ASSERT_EQ(CheckOnGpu(kernel, product, Defaults(kernel)), "");
  }
}

// cuBLAS may round the product to the type of D before it adds beta C: with these small k
// that is above the bound of one rounding.
TEST_F(GpuLibraries, DIsRoundedOnce) {
  std::mt19937_64 random(16);
  for (const Kernel* kernel : Catalogue()) {
    if (kernel->family != "cublas" && kernel->family != "cublaslt") continue;
    for (const int64_t k : {64, 128, 192, 256}) {
      for (const int64_t m : {64, 128, 256}) {
        for (const double beta : {0.0, 1.0}) {
          ProductCase product = RandomCase(kernel->types[0], m, 256, k, random);
          product.problem.alpha = 1;
          product.problem.beta = beta;
          product.problem.bias = BiasAxis::kNone;
          product.problem.activation = Activation::kNone;
          EXPECT_EQ(CheckOnGpu(*kernel, product, Defaults(*kernel)), "") << kernel->name;
        }
      }
    }
  }
}

// Products that libraries like to split along k, where k is no multiple of any tile's. Their
// elements are exact, so an end of k that is left out is not within any bound, even in f16.
TEST_F(GpuLibraries, TheEndOfKIsAccumulated) {
  std::mt19937_64 random(15);
  for (const Kernel* kernel : Catalogue()) {
    if (kernel->family != "cublas" && kernel->family != "cublaslt") continue;
    for (const int64_t k : {4099, 8195, 16387, 32771}) {
      for (const int64_t mn : {17, 64, 256}) {
        const ProductCase product = ExactCase(kernel->types[0], mn, mn, k, random);
        ASSERT_EQ(CheckOnGpu(*kernel, product, Defaults(*kernel)), "") << kernel->name;
      }
    }
  }
}

// As for a batch whose algorithm takes few products in a call.
TEST_F(GpuLibraries, TheCallsOfABatchGoInPiecesOfTheSameBits) {
  Gpu& gpu = *Gpu::Get();
  constexpr int64_t kProducts = 2 * kLaunchesInPiece + 44, kElements = 256;
  const Problem problem = {.m = 16, .n = 16, .k = 16, .batch = kProducts};
  std::mt19937_64 random(17);
  const auto drawn = [&] {
    std::vector<float> values(kProducts * kElements);
    for (float& value : values) value = static_cast<float>(random() % 1000) / 999.0f;
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    return std::vector<std::byte>(bytes, bytes + values.size() * sizeof(float));
  };
  const std::vector<std::byte> nothing(kProducts * kElements * sizeof(float));
  gpu.Reset();
  Operands operands = {.lda = 16, .ldb = 16, .ldd = 16};
  operands.a = gpu.Upload(drawn(), 0);
  operands.b = gpu.Upload(drawn(), 0);
  operands.stride_a = operands.stride_b = operands.stride_d = kElements;
  const auto run = [&](LaunchPiece* piece, int& calls) {
    std::vector<std::byte> d = nothing;
    std::byte* const on_gpu = gpu.Upload(d, 0);
    operands.d = on_gpu;
    const absl::StatusOr<LtPlan*> made = gpu.libraries()->PlanFor(problem, operands, 0);
    EXPECT_TRUE(made.ok()) << made.status();
    LtPlan plan = **made;
    EXPECT_EQ(SetBatch(plan, 1), absl::OkStatus());
    const Launch launch = {.problem = problem,
                           .operands = operands,
                           .workspace = {},
                           .params = {},
                           .stream = gpu.stream(),
                           .libraries = gpu.libraries(),
                           .piece = piece};
    do {
      EXPECT_EQ(RunLtPlan(launch, problem, operands, plan), absl::OkStatus());
      ++calls;
    } while (piece != nullptr && piece->more() && calls < 100);
    gpu.Download(on_gpu, d);
    EXPECT_EQ(gpu.Synchronize(), absl::OkStatus());
    return d;
  };
  int at_once = 0, in_pieces = 0;
  LaunchPiece piece;
  const std::vector<std::byte> expected = run(nullptr, at_once);
  EXPECT_NE(expected, nothing);
  EXPECT_EQ(run(&piece, in_pieces), expected);
  EXPECT_EQ(at_once, 1);
  EXPECT_EQ(in_pieces, 3);
}

}  // namespace
}  // namespace gemm::testing
