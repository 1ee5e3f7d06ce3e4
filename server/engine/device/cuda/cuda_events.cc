// A stack of free events: the one used last is used next.
#include "server/engine/device/cuda/cuda_events.h"

namespace gemmd {

CudaEventPool::~CudaEventPool() {
  UseCudaDevice(device_);
  MutexLock lock(mutex_);
  for (const cudaEvent_t event : free_) cudaEventDestroy(event);
}

absl::StatusOr<cudaEvent_t> CudaEventPool::Acquire() {
  {
    MutexLock lock(mutex_);
    if (!free_.empty()) {
      const cudaEvent_t event = free_.back();
      free_.pop_back();
      return event;
    }
  }
  UseCudaDevice(device_);
  cudaEvent_t event = nullptr;
  absl::Status status =
      health_.Check(cudaEventCreateWithFlags(&event, flags_), "cudaEventCreateWithFlags");
  if (!status.ok()) return status;
  return event;
}

void CudaEventPool::Recycle(cudaEvent_t event) {
  MutexLock lock(mutex_);
  free_.push_back(event);
}

}  // namespace gemmd
