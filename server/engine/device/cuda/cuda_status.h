// Converts CUDA errors to statuses, and tracks whether a device is lost.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/engine/device/device_health.h"

namespace gemmd {

// Makes CUDA device `index` current on the calling thread. Free if it already is.
// Nothing else in this process may call cudaSetDevice.
void UseCudaDevice(int index);

// "cudaErrorInvalidValue: invalid argument".
std::string CudaErrorText(cudaError_t error);

// Whether, by CUDA's documentation, this process can no longer use the device after a
// call has returned `error`.
bool LosesDevice(cudaError_t error);

// The health of one device, which errors of CUDA end. Thread-safe.
class CudaHealth : public DeviceHealth {
 public:
  using DeviceHealth::DeviceHealth;
  using DeviceHealth::Lose;

  // The result of `call` as a status. An error that does not lose the device: INTERNAL.
  // Any other records the loss and returns status().
  absl::Status Check(cudaError_t result, absl::string_view call);
  // Records the loss of the device by `error` and returns status().
  absl::Status Lose(cudaError_t error) { return Lose(CudaErrorText(error)); }
};

}  // namespace gemmd
