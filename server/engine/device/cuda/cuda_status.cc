// Which errors end a device, and how they read.
#include "server/engine/device/cuda/cuda_status.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"

namespace gemmd {
namespace {

thread_local int current_device = -1;

// After these "any further CUDA work will return the same error", by the
// runtime's documentation, or the device or its memory is gone.
constexpr std::array kLosingErrors = {
    cudaErrorECCUncorrectable,
    cudaErrorNvlinkUncorrectable,
    cudaErrorContained,
    cudaErrorIllegalAddress,
    cudaErrorLaunchTimeout,
    cudaErrorContextIsDestroyed,
    cudaErrorAssert,
    cudaErrorHardwareStackError,
    cudaErrorIllegalInstruction,
    cudaErrorMisalignedAddress,
    cudaErrorInvalidAddressSpace,
    cudaErrorInvalidPc,
    cudaErrorLaunchFailure,
    cudaErrorExternalDevice,
    cudaErrorMpsClientTerminated,
    cudaErrorDevicesUnavailable,
    cudaErrorUnknown,
};

}  // namespace

void UseCudaDevice(int index) {
  if (current_device == index) return;
  if (cudaSetDevice(index) == cudaSuccess) {
    current_device = index;
  } else {
    // A lost device; the call that follows says so.
    cudaGetLastError();
  }
}

std::string CudaErrorText(cudaError_t error) {
  return absl::StrCat(cudaGetErrorName(error), ": ", cudaGetErrorString(error));
}

bool LosesDevice(cudaError_t error) {
  return std::find(kLosingErrors.begin(), kLosingErrors.end(), error) != kLosingErrors.end();
}

absl::Status CudaHealth::Check(cudaError_t result, absl::string_view call) {
  if (result == cudaSuccess) return absl::OkStatus();
  // Kernels look at the last error after a launch: leave them none of ours.
  cudaGetLastError();
  if (lost() || LosesDevice(result)) return Lose(result);
  return absl::InternalError(absl::StrCat(device_, ": ", call, ": ", CudaErrorText(result)));
}

}  // namespace gemmd
