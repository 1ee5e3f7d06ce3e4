// Copies operands for libraries that need more rows, or longer ones.
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

// Enqueues a copy to `target`: `rows` dense rows of `row_bytes`, a multiple of 16. Bytes
// that the matrix does not have become zeros.
absl::Status CopyPadded(const MatrixBytes& matrix, void* target, int64_t rows, int64_t row_bytes,
                        CUstream_st* stream);

}  // namespace gemm
