// Runs products for the tests on a GPU.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gemm/libraries.h"
#include "tests/kernels/product_case.h"

namespace gemm::testing {

// One stream with its libraries, and device memory handed out front to back.
class Gpu {
 public:
  // Created on first use, for the life of the program; null if that failed.
  static Gpu* Get();

  DeviceCaps caps() const { return caps_; }
  cudaStream_t stream() const { return stream_; }
  Libraries* libraries() const { return libraries_.get(); }

  // Takes all memory back.
  void Reset() { used_ = 0; }

  // `offset` bytes past a 256-byte boundary.
  std::byte* Allocate(size_t bytes, size_t offset);
  std::byte* Upload(const std::vector<std::byte>& bytes, size_t offset);
  void Download(const std::byte* data, std::vector<std::byte>& bytes);
  absl::Status Synchronize();

 private:
  static constexpr size_t kBytes = size_t{1} << 30;

  static Gpu* Create();

  DeviceCaps caps_;
  std::byte* memory_ = nullptr;
  size_t used_ = 0;
  cudaStream_t stream_ = nullptr;
  std::shared_ptr<Libraries> libraries_;
};

// Skips if there is no CUDA device.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override;
};

LaunchParams Defaults(const Kernel& kernel);

// Runs the case's product on matrices that start `offset` bytes past a 256-byte boundary, each
// between its guard bands. 16 is the smallest offset that kernels must take.
absl::Status RunOnGpu(const Kernel& kernel, ProductData& data, const LaunchParams& params,
                      size_t offset);

// The same with each matrix in an allocation of its own that ends where it ends,
// so that compute-sanitizer sees a step beyond it.
absl::Status RunInExactBuffers(const Kernel& kernel, ProductData& data);

// The product of A and B with each element mapped by `of`, in double precision, by cuBLAS.
ProductData InF64OnGpu(const ProductData& data, double (*of)(double));

// CheckProduct on the GPU. Faults come with the launch parameters.
std::string CheckOnGpu(const Kernel& kernel, const ProductCase& product,
                       const LaunchParams& params);

// " swizzle=0 group_m=8".
std::string Describe(const Kernel& kernel, const LaunchParams& params);

}  // namespace gemm::testing
