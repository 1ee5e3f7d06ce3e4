// The energy counter of NVIDIA's GPUs, through NVML.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/bench/backend/backend.h"

namespace gemm::bench {

// It comes with the driver. It is loaded at run time, so that programs start without it.
inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

// The counter of the GPU at `pci_bus_id`, as "0000:3b:00.0": NVML's indices are not CUDA's, which
// CUDA_VISIBLE_DEVICES changes. UNAVAILABLE, with the reason, if the library cannot be loaded,
// does not know the GPU, or has no counter for it.
absl::StatusOr<std::unique_ptr<EnergyCounter>> OpenNvmlEnergy(const std::string& pci_bus_id,
                                                              const char* library = kNvmlLibrary);

}  // namespace gemm::bench
