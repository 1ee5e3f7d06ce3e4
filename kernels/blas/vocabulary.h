// Our types and scalars as cuBLAS's, and its errors as statuses.
#pragma once

#include <cublas_v2.h>

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gemm/problem.h"

namespace gemm {

// OK, or INTERNAL with the failed call `what` and cuBLAS's message.
absl::Status CublasStatus(cublasStatus_t status, absl::string_view what);

// Every type has one.
cudaDataType_t CublasType(DType type);

// f32 operands are multiplied in full f32 unless the mode is kTF32.
cublasComputeType_t CublasCompute(Compute compute);

// The type in which cuBLAS takes alpha and beta. If it is f16, they are 1 and 0
// (NeedsAccumulatorScratch). If it is s32, alpha is 1 and beta 0 or 1 (gemm/scalars.h).
DType ScaleType(Compute compute);

inline cublasOperation_t CublasOp(bool transposed) {
  return transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

// Alpha and beta in the scale type, in host memory.
struct Scalars {
  alignas(8) std::byte alpha[8];
  alignas(8) std::byte beta[8];
};

Scalars MakeScalars(const Problem& problem);

}  // namespace gemm
