// For a build without CUDA.
#include "kernels/bench/backend.h"
#include "kernels/bench/triton_kernels.h"

namespace gemm::bench {

absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(int) {
  return absl::UnavailableError("this build has no CUDA: it measures the host device only");
}

absl::StatusOr<std::vector<Candidate>> LoadTritonKernels(const std::string&) {
  return absl::UnavailableError("this build has no CUDA: it runs no kernels of Triton's");
}

}  // namespace gemm::bench
