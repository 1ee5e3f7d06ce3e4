// Dynamic shared memory beyond the 48 KiB that every launch may have.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/cuda_status.h"

namespace gemm {

// Allows `kernel` to use `bytes` of dynamic shared memory a block on the current
// device, and prefers shared memory to L1. FAILED_PRECONDITION where a block cannot
// have that many.
inline absl::Status AskForSharedMemory(const void* kernel, int device, int bytes) {
  int most = 0;
  const absl::Status asked =
      CudaStatus(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                 "cudaDeviceGetAttribute of a block's shared memory");
  if (!asked.ok()) return asked;
  if (bytes > most) {
    return absl::FailedPreconditionError(
        absl::StrCat("a block of this kernel needs ", bytes,
                     " bytes of shared memory; on this device it can have ", most));
  }
  const absl::Status allowed =
      CudaStatus(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                 "cudaFuncSetAttribute of the shared memory");
  if (!allowed.ok()) return allowed;
  return CudaStatus(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                         cudaSharedmemCarveoutMaxShared),
                    "cudaFuncSetAttribute of the carveout");
}

// The same, once for each device. Thread-safe.
template <auto* kKernel>
absl::Status AllowSharedMemory(int bytes) {
  static std::atomic<uint64_t> allowed{0};  // a bit for each device
  int device = 0;
  if (absl::Status status = CudaStatus(cudaGetDevice(&device), "cudaGetDevice"); !status.ok()) {
    return status;
  }
  const uint64_t bit = device < 64 ? uint64_t{1} << device : 0;
  if (allowed.load(std::memory_order_relaxed) & bit) return absl::OkStatus();
  const absl::Status status =
      AskForSharedMemory(reinterpret_cast<const void*>(kKernel), device, bytes);
  if (status.ok()) allowed.fetch_or(bit, std::memory_order_relaxed);
  return status;
}

}  // namespace gemm
