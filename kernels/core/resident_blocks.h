// The number of thread blocks of a kernel that run at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>

#include "absl/status/statusor.h"
#include "kernels/core/cuda_status.h"

namespace gemm {

// The most blocks of `threads` threads and `dynamic_bytes` of shared memory that run
// on the device at a time; at least 1.
inline absl::StatusOr<int> AskForResidentBlocks(const void* kernel, int device, int threads,
                                                int dynamic_bytes) {
  int multiprocessors = 0;
  const absl::Status counted =
      CudaStatus(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
                 "cudaDeviceGetAttribute of the multiprocessors");
  if (!counted.ok()) return counted;
  int blocks = 0;
  const absl::Status asked =
      CudaStatus(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads,
                                                               static_cast<size_t>(dynamic_bytes)),
                 "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  if (!asked.ok()) return asked;
  return multiprocessors * (blocks > 0 ? blocks : 1);
}

// The same for the current device. Asks once for each device. Thread-safe.
template <auto* kKernel>
absl::StatusOr<int> ResidentBlocks(int threads, int dynamic_bytes) {
  constexpr int kDevices = 64;
  static std::atomic<int> known[kDevices] = {};
  int device = 0;
  if (absl::Status status = CudaStatus(cudaGetDevice(&device), "cudaGetDevice"); !status.ok()) {
    return status;
  }
  if (device < kDevices) {
    const int blocks = known[device].load(std::memory_order_relaxed);
    if (blocks > 0) return blocks;
  }
  const absl::StatusOr<int> blocks =
      AskForResidentBlocks(reinterpret_cast<const void*>(kKernel), device, threads, dynamic_bytes);
  if (blocks.ok() && device < kDevices) known[device].store(*blocks, std::memory_order_relaxed);
  return blocks;
}

}  // namespace gemm
