// Kernels of Triton's, to be measured beside those of the catalogue.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/bench/candidate.h"

namespace gemm::bench {

// Loads the kernels that compile_triton.py left in `folder`, for the current CUDA
// device; they stay until the process ends. They take operands that are not
// transposed. NOT_FOUND or INVALID_ARGUMENT where the list in it is not as that
// program leaves it, INTERNAL where a kernel does not load, UNAVAILABLE without
// CUDA.
absl::StatusOr<std::vector<Candidate>> LoadTritonKernels(const std::string& folder);

}  // namespace gemm::bench
