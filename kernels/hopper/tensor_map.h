// Describes matrices to TMA.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "gemm/dtype.h"

namespace gemm {

// Rows of `columns` elements in device memory, `pitch` bytes apart; a multiple of 16. They are
// copied in boxes of `box_rows` (up to 256) by 128 bytes. kTF32 rounds f32 elements on the way.
struct TiledMatrix {
  const void* data = nullptr;
  DType type = DType::kF16;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t pitch = 0;
  int box_rows = 0;
  Compute compute = Compute::kF32;
};

// FAILED_PRECONDITION where the driver has no TMA. INTERNAL where it refuses the matrix.
absl::StatusOr<CUtensorMap> DescribeToTma(const TiledMatrix& matrix);

}  // namespace gemm
