// What the cuBLAS rows need beside the stream.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "gemm/kernel.h"

namespace gemm {

// Handles of cuBLAS and cuBLASLt bound to one stream, with a bounded cache of
// cuBLASLt's choices by problem. All of cuBLAS's device memory is allocated
// here, none on the way of a product.
absl::StatusOr<std::shared_ptr<Libraries>> CreateLibraries(CUstream_st* stream);

}  // namespace gemm
