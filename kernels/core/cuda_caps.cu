#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "gemm/machine.h"
#include "kernels/core/cuda_status.h"
#include "kernels/ptx/architecture.h"

namespace gemm {
namespace {

constexpr int ThreadsFor(DeviceCode code) { return 32 * (1 + static_cast<int>(code)); }

// Never runs. All device code of the library is compiled for the same architectures. So this
// kernel's bound on the threads of a block tells which of them the device takes.
__global__ __launch_bounds__(ThreadsFor(GEMM_HAS_WGMMA     ? DeviceCode::kSm90a
                                        : GEMM_HAS_FP8_MMA ? DeviceCode::kSm89
                                                           : DeviceCode::kAny)) void CodeMarker() {}

cudaError_t AskForMarker(int ordinal, cudaFuncAttributes& marker) {
  int current = 0;
  cudaError_t error = cudaGetDevice(&current);
  if (error == cudaSuccess) error = cudaSetDevice(ordinal);
  if (error != cudaSuccess) return error;
  error = cudaFuncGetAttributes(&marker, CodeMarker);
  const cudaError_t back = cudaSetDevice(current);
  return error == cudaSuccess ? back : error;
}

}  // namespace

absl::StatusOr<DeviceCaps> CudaCaps(int ordinal) {
  int major = 0, minor = 0;
  absl::Status status =
      CudaStatus(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal),
                 "cudaDeviceGetAttribute of the compute capability");
  status.Update(
      CudaStatus(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal),
                 "cudaDeviceGetAttribute of the compute capability"));
  if (!status.ok()) {
    (void)cudaGetLastError();  // hides it from the next call
    return status;
  }
  DeviceCaps caps{.target = Target::kCuda, .capability = major * 10 + minor};
  cudaFuncAttributes marker{};
  if (const cudaError_t asked = AskForMarker(ordinal, marker); asked != cudaSuccess) {
    (void)cudaGetLastError();  // hides it from the next call
    return absl::FailedPreconditionError(absl::StrCat(
        "this build has no code for CUDA device ", ordinal, " of compute capability ", major, ".",
        minor, " (", cudaGetErrorName(asked), "): configure with it in CMAKE_CUDA_ARCHITECTURES"));
  }
  for (const DeviceCode code : {DeviceCode::kSm90a, DeviceCode::kSm89, DeviceCode::kAny}) {
    caps.code = code;
    if (marker.maxThreadsPerBlock == ThreadsFor(code)) return caps;
  }
  return absl::InternalError(absl::StrCat("the marker of the device code allows ",
                                          marker.maxThreadsPerBlock, " threads a block"));
}

}  // namespace gemm
