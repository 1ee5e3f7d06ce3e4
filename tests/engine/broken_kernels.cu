#include <cstdint>

#include "kernels/core/cuda_status.h"
#include "tests/engine/broken_kernels.h"

namespace gemmd {
namespace {

constexpr gemm::Types kTypes[] = {
    {gemm::DType::kF32, gemm::DType::kF32, gemm::DType::kF32, gemm::Compute::kF32}};

__global__ void WriteNowhere() { *reinterpret_cast<volatile int*>(uintptr_t{1} << 45) = 1; }

__global__ void SleepForever() {
  while (true) __nanosleep(1000);
}

absl::Status LaunchIllegal(const gemm::Launch& launch) {
  WriteNowhere<<<1, 1, 0, launch.stream>>>();
  return gemm::CudaStatus(cudaGetLastError(), "launch of a kernel that breaks the device");
}

absl::Status LaunchEndless(const gemm::Launch& launch) {
  SleepForever<<<1, 1, 0, launch.stream>>>();
  return gemm::CudaStatus(cudaGetLastError(), "launch of a kernel that does not end");
}

}  // namespace

const gemm::Kernel& IllegalKernel() {
  static constexpr gemm::Kernel kernel = {
      .name = "illegal", .family = "broken", .types = kTypes, .launch = LaunchIllegal};
  return kernel;
}

const gemm::Kernel& EndlessKernel() {
  static constexpr gemm::Kernel kernel = {
      .name = "endless", .family = "broken", .types = kTypes, .launch = LaunchEndless};
  return kernel;
}

}  // namespace gemmd
