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

// The most clusters of `cluster` such blocks that run on the device at a time; at least 1. They
// have fewer blocks than could run alone: a cluster runs within one of the device's groups of SMs.
inline absl::StatusOr<int> AskForResidentClusters(const void* kernel, int cluster, int threads,
                                                  int dynamic_bytes) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = {static_cast<unsigned>(cluster), 1, 1};
  config.blockDim = {static_cast<unsigned>(threads), 1, 1};
  config.dynamicSmemBytes = static_cast<size_t>(dynamic_bytes);
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  const absl::Status asked = CudaStatus(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config),
                                        "cudaOccupancyMaxActiveClusters");
  if (!asked.ok()) return asked;
  return clusters > 0 ? clusters : 1;
}

// The result of `ask(device)` for kKernel on the current device. Asks once for each device.
// Thread-safe.
template <auto* kKernel, class Ask>
absl::StatusOr<int> AskedOnce(const Ask& ask) {
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
  const absl::StatusOr<int> blocks = ask(device);
  if (blocks.ok() && device < kDevices) known[device].store(*blocks, std::memory_order_relaxed);
  return blocks;
}

// The same for the current device.
template <auto* kKernel>
absl::StatusOr<int> ResidentBlocks(int threads, int dynamic_bytes) {
  return AskedOnce<kKernel>([&](int device) {
    return AskForResidentBlocks(reinterpret_cast<const void*>(kKernel), device, threads,
                                dynamic_bytes);
  });
}
template <auto* kKernel>
absl::StatusOr<int> ResidentClusters(int cluster, int threads, int dynamic_bytes) {
  return AskedOnce<kKernel>([&](int) {
    return AskForResidentClusters(reinterpret_cast<const void*>(kKernel), cluster, threads,
                                  dynamic_bytes);
  });
}

}  // namespace gemm
