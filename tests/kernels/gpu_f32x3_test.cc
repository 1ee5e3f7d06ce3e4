// The errors of the f32x3 rows and of cuBLAS in f32, against double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/kernels/gpu.h"
#include "tests/kernels/product_case.h"

namespace gemm::testing {
namespace {

constexpr Types kF32x3{DType::kF32, DType::kF32, DType::kF32, Compute::kF32x3};
constexpr Types kF32{DType::kF32, DType::kF32, DType::kF32, Compute::kF32};
// The allowed error, as a multiple of that of cuBLAS in f32.
constexpr double kOfF32 = 1.5;

std::vector<const Kernel*> F32x3Kernels() {
  std::vector<const Kernel*> kernels;
  for (const Kernel* kernel : Catalogue()) {
    if (kernel->target == Target::kCuda && kernel->types.front() == kF32x3) {
      kernels.push_back(kernel);
    }
  }
  return kernels;
}

struct InputKind {
  const char* name;
  void (*fill)(GuardedMatrix&, uint64_t seed);
};

// Elements of either sign, over 40 powers of two.
void FillWide(GuardedMatrix& matrix, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int> exponent(-20, 20);
  for (int64_t i = 0; i < matrix.rows(); ++i) {
    for (int64_t j = 0; j < matrix.cols(); ++j) {
      matrix.Set(i, j, std::ldexp(normal(random), exponent(random)));
    }
  }
}

constexpr InputKind kInputKinds[] = {
    {"normal", [](GuardedMatrix& x, uint64_t seed) { x.FillNormal(seed); }},
    {"uniform in [0, 1)", [](GuardedMatrix& x, uint64_t seed) { x.FillUniform(seed, 0, 1); }},
    {"normal times 2^-20 to 2^20", FillWide},
};

// Errors relative to the sum of the added magnitudes: the root mean square, and the largest.
struct Errors {
  double rms = 0;
  double worst = 0;
};

// In double precision, by cuBLAS.
class Reference {
 public:
  explicit Reference(const ProductData& data)
      : sums_(InF64OnGpu(data, [](double x) { return x; })),
        magnitudes_(InF64OnGpu(data, [](double x) { return std::abs(x); })) {}

  Errors Of(const ProductData& data) const {
    const Problem& p = data.product.problem;
    Errors errors;
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        double error = std::abs(data.d.At(i, j) - sums_.d.At(i, j)) / magnitudes_.d.At(i, j);
        if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
        errors.rms += error * error / static_cast<double>(p.m * p.n);
        errors.worst = std::max(errors.worst, error);
      }
    }
    errors.rms = std::sqrt(errors.rms);
    return errors;
  }

 private:
  ProductData sums_, magnitudes_;
};

// m and n, and k. cuBLAS shares k among blocks where m and n are small, and adds few elements in a
// row then.
constexpr int64_t kShapes[][2] = {{160, 128},   {160, 1024},  {160, 8192}, {1024, 1024},
                                  {1024, 4096}, {1024, 8192}, {2048, 2048}};

class GpuF32x3 : public GpuTest {};

TEST_F(GpuF32x3, ErrsNoMoreThanF32) {
  const absl::StatusOr<const Kernel*> cublas = FindKernel("cublas_f32");
  ASSERT_TRUE(cublas.ok()) << cublas.status();
  for (const InputKind& kind : kInputKinds) {
    for (const auto& [edge, k] : kShapes) {
      ProductCase product;
      product.problem = {.m = edge, .n = edge, .k = k, .types = kF32};
      ProductData data(product);
      kind.fill(data.a, 1);
      kind.fill(data.b, 2);
      const Reference reference(data);
      ASSERT_EQ(RunOnGpu(**cublas, data, Defaults(**cublas), 0), absl::OkStatus());
      const Errors f32 = reference.Of(data);
      printf("%s, m and n %d, k %d: cublas_f32 rms %.3g, worst %.3g\n", kind.name,
             static_cast<int>(edge), static_cast<int>(k), f32.rms, f32.worst);
      data.product.problem.types = kF32x3;
      for (const Kernel* const kernel : F32x3Kernels()) {
        if (!CheckDevice(*kernel, Gpu::Get()->caps()).ok()) continue;
        data.d.Poison();
        ASSERT_EQ(RunOnGpu(*kernel, data, Defaults(*kernel), 0), absl::OkStatus());
        const Errors errors = reference.Of(data);
        printf("  %-50s %.2f of the rms, %.2f of the worst\n", std::string(kernel->name).c_str(),
               errors.rms / f32.rms, errors.worst / f32.worst);
        // For a small D `auto` takes others.
        if (edge < 1024 && kernel->name == "hopper_f32x3_128x128x32_s4_coop2") continue;
        EXPECT_LE(errors.rms, kOfF32 * f32.rms)
            << kernel->name << ", " << kind.name << ", k of " << k;
      }
    }
  }
}

}  // namespace
}  // namespace gemm::testing
