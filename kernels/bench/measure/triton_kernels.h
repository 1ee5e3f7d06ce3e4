// Triton's kernels, measured beside those of the catalogue.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/bench/measure/candidate.h"

namespace gemm::bench {

// Loads the kernels that compile_triton.py wrote to `folder`, for the current CUDA device.
// They stay loaded until the process ends. They take operands that are not transposed.
// NOT_FOUND or INVALID_ARGUMENT if the folder's list is missing or malformed, INTERNAL if a kernel
// does not load, UNAVAILABLE without CUDA.
absl::StatusOr<std::vector<Candidate>> LoadTritonKernels(const std::string& folder);

}  // namespace gemm::bench
