// CUDA's errors as ours, and whether a device is still there.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/base/mutex.h"

namespace gemmd {

// Makes CUDA device `index` the calling thread's. Costs nothing where it is.
// Nothing else in this process may call cudaSetDevice.
void UseCudaDevice(int index);

// "cudaErrorInvalidValue: invalid argument".
std::string CudaErrorText(cudaError_t error);

// Whether the device can no longer be used by this process once a call has
// returned `error`, as its documentation says.
bool LosesDevice(cudaError_t error);

// The health of one device. Once lost it stays lost. Thread-safe.
class CudaHealth {
 public:
  // `device`: "cuda:0".
  explicit CudaHealth(std::string device) : device_(std::move(device)) {}

  bool lost() const { return lost_.load(std::memory_order_acquire); }
  // OK, or UNAVAILABLE with the error that lost the device.
  absl::Status status() const;

  // The result of `call` as a status: INTERNAL where the device goes on, else
  // status() once the loss is noted.
  absl::Status Check(cudaError_t result, absl::string_view call);
  // Notes the loss of the device through `error` and returns status().
  absl::Status Lose(cudaError_t error);

 private:
  const std::string device_;
  std::atomic<bool> lost_{false};
  mutable Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
