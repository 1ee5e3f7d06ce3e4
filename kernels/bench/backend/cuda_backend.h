// A CUDA device, in builds with CUDA.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/bench/backend/backend.h"

namespace gemm::bench {

// UNAVAILABLE without such a device.
absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(int ordinal);

}  // namespace gemm::bench
