// Describes matrices to TMA.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "gemm/dtype.h"

namespace gemm {

// Matrices in device memory, `stride` bytes apart, of rows of `columns` elements, `pitch` bytes
// apart; both are multiples of 16. They are copied in boxes of `box_rows` (up to 256) by 128
// bytes, or by `box_columns` columns. kTF32 rounds f32 elements on the way.
struct TiledMatrices {
  const void* data = nullptr;
  DType type = DType::kF16;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t pitch = 0;
  int64_t count = 1;
  int64_t stride = 0;  // unused for one matrix
  int box_rows = 0;
  // 0: rows of a box have 128 bytes, and are swizzled as box.h says. Otherwise rows have this many
  // elements (up to 256), and lie one after the other without a swizzle.
  int box_columns = 0;
  Compute compute = Compute::kF32;
};

// FAILED_PRECONDITION where the driver has no TMA. INTERNAL where it refuses the matrices.
absl::StatusOr<CUtensorMap> DescribeToTma(const TiledMatrices& matrices);

}  // namespace gemm
