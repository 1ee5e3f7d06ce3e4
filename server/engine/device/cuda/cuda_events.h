// A pool of CUDA events.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/mutex.h"
#include "server/engine/device/cuda/cuda_status.h"
#include "server/engine/device/device.h"

namespace gemmd {

// Creates an event if none is free. Thread-safe. Must outlive its events.
class CudaEventPool {
 public:
  // `flags` as in cudaEventCreateWithFlags. `health` must outlive this.
  CudaEventPool(int device, unsigned flags, CudaHealth& health)
      : device_(device), flags_(flags), health_(health) {}
  ~CudaEventPool();

  absl::StatusOr<cudaEvent_t> Acquire();
  void Recycle(cudaEvent_t event);

 private:
  const int device_;
  const unsigned flags_;
  CudaHealth& health_;
  Mutex mutex_;
  std::vector<cudaEvent_t> free_ ABSL_GUARDED_BY(mutex_);
};

// An event of a CudaDevice.
class CudaEvent final : public Event {
 public:
  // `handle` is an error if no event could be created; Record() returns it.
  explicit CudaEvent(absl::StatusOr<cudaEvent_t> handle) : handle_(std::move(handle)) {}

  const absl::StatusOr<cudaEvent_t>& handle() const { return handle_; }
  bool recorded() const { return recorded_.load(std::memory_order_acquire); }
  void set_recorded(bool recorded) { recorded_.store(recorded, std::memory_order_release); }

 private:
  const absl::StatusOr<cudaEvent_t> handle_;
  std::atomic<bool> recorded_{false};
};

}  // namespace gemmd
