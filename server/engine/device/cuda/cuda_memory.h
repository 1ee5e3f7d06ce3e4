// All memory that the server takes from the CUDA driver or pins.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/device/cuda/cuda_status.h"

namespace gemmd {

// The memory of one device and its staging. No other file calls cudaMalloc,
// cudaHostAlloc or their counterparts, so this counts all driver allocations, except
// those that the handles of gemm/libraries.h make when they are created.
class CudaMemory {
 public:
  struct Available {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
  };

  // `health` must outlive this.
  CudaMemory(int device, CudaHealth& health) : device_(device), health_(health) {}
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;
  ~CudaMemory();

  // The memory is freed at destruction. RESOURCE_EXHAUSTED, with the bytes requested and
  // free, if there is not enough. Not thread-safe.
  absl::StatusOr<std::byte*> AllocateDevice(size_t bytes);
  absl::StatusOr<std::byte*> AllocatePinned(size_t bytes);

  absl::StatusOr<Available> Query();

  // Allocations, frees and pinnings so far, without events and streams.
  int64_t driver_allocations() const { return count_.load(std::memory_order_relaxed); }

 private:
  void Count() { count_.fetch_add(1, std::memory_order_relaxed); }

  const int device_;
  CudaHealth& health_;
  std::atomic<int64_t> count_{0};
  std::vector<void*> device_memory_;
  std::vector<void*> pinned_memory_;
};

}  // namespace gemmd
