// For a build without CUDA.
#include "kernels/bench/backend.h"

namespace gemm::bench {

absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(int) {
  return absl::UnavailableError("this build has no CUDA: it measures the host device only");
}

}  // namespace gemm::bench
