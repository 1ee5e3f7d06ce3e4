// The only calls that allocate, free or pin memory.
#include "server/engine/device/cuda/cuda_memory.h"

#include "absl/strings/str_cat.h"

namespace gemmd {

CudaMemory::~CudaMemory() {
  UseCudaDevice(device_);
  // A lost device returns only errors.
  for (void* memory : pinned_memory_) {
    Count();
    cudaFreeHost(memory);
  }
  for (void* memory : device_memory_) {
    Count();
    cudaFree(memory);
  }
}

absl::StatusOr<std::byte*> CudaMemory::AllocateDevice(size_t bytes) {
  UseCudaDevice(device_);
  void* memory = nullptr;
  Count();
  const cudaError_t result = cudaMalloc(&memory, bytes);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    const absl::StatusOr<Available> available = Query();
    if (!available.ok()) return available.status();
    return absl::ResourceExhaustedError(absl::StrCat(
        "cuda:", device_, ": --device-memory-bytes: ", bytes, " bytes could not be allocated, ",
        available->free_bytes, " of ", available->total_bytes, " are free"));
  }
  if (absl::Status status = health_.Check(result, "cudaMalloc"); !status.ok()) return status;
  device_memory_.push_back(memory);
  return static_cast<std::byte*>(memory);
}

absl::StatusOr<std::byte*> CudaMemory::AllocatePinned(size_t bytes) {
  UseCudaDevice(device_);
  void* memory = nullptr;
  Count();
  const cudaError_t result = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return absl::ResourceExhaustedError(absl::StrCat("cuda:", device_, ": --staging-bytes: ", bytes,
                                                     " bytes of host memory could not be pinned"));
  }
  if (absl::Status status = health_.Check(result, "cudaHostAlloc"); !status.ok()) return status;
  pinned_memory_.push_back(memory);
  return static_cast<std::byte*>(memory);
}

absl::StatusOr<CudaMemory::Available> CudaMemory::Query() {
  UseCudaDevice(device_);
  Available available;
  absl::Status status = health_.Check(cudaMemGetInfo(&available.free_bytes, &available.total_bytes),
                                      "cudaMemGetInfo");
  if (!status.ok()) return status;
  return available;
}

}  // namespace gemmd
