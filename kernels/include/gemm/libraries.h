// The libraries' handles, which cuBLAS rows need in addition to the stream.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "gemm/kernel.h"

namespace gemm {

// Creates handles of cuBLAS and cuBLASLt for one stream, with a bounded cache of
// cuBLASLt's choices by problem. Allocates all of cuBLAS's device memory here, none
// during a product.
absl::StatusOr<std::shared_ptr<Libraries>> CreateLibraries(CUstream_st* stream);

}  // namespace gemm
