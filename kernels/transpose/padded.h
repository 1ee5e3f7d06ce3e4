// Copies of operands whose rows, or rows' ends, a library cannot do without.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

struct CUstream_st;

namespace gemm {

// A matrix in device memory, in bytes: rows on 16-byte boundaries.
struct MatrixBytes {
  const void* data = nullptr;
  int64_t rows = 0;
  int64_t row_bytes = 0;
  int64_t pitch = 0;
};

// Enqueues a copy to `target` of `rows` rows of `row_bytes`, dense, zeros where
// the matrix has none. `row_bytes` is a multiple of 16.
absl::Status CopyPadded(const MatrixBytes& matrix, void* target, int64_t rows, int64_t row_bytes,
                        CUstream_st* stream);

}  // namespace gemm
