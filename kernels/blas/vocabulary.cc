#include "kernels/blas/vocabulary.h"

#include "absl/strings/str_cat.h"
#include "gemm/reference.h"

namespace gemm {

absl::Status CublasStatus(cublasStatus_t status, absl::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(what, ": ", cublasGetStatusName(status), ": ", cublasGetStatusString(status)));
}

cudaDataType_t CublasType(DType type) {
  switch (type) {
    case DType::kF64:
      return CUDA_R_64F;
    case DType::kF16:
      return CUDA_R_16F;
    case DType::kBF16:
      return CUDA_R_16BF;
    case DType::kE4M3:
      return CUDA_R_8F_E4M3;
    case DType::kE5M2:
      return CUDA_R_8F_E5M2;
    case DType::kS8:
      return CUDA_R_8I;
    case DType::kS32:
      return CUDA_R_32I;
    default:
      return CUDA_R_32F;
  }
}

cublasComputeType_t CublasCompute(Compute compute) {
  switch (compute) {
    case Compute::kF64:
      return CUBLAS_COMPUTE_64F;
    case Compute::kF32:
      return CUBLAS_COMPUTE_32F;
    case Compute::kTF32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case Compute::kF32x3:
      return CUBLAS_COMPUTE_32F;
    case Compute::kS32:
      return CUBLAS_COMPUTE_32I;
    case Compute::kF16:
      break;
  }
  return CUBLAS_COMPUTE_16F;
}

DType ScaleType(Compute compute) {
  switch (compute) {
    case Compute::kF64:
      return DType::kF64;
    case Compute::kF32:
    case Compute::kTF32:
    case Compute::kF32x3:
      return DType::kF32;
    case Compute::kS32:
      return DType::kS32;
    case Compute::kF16:
      break;
  }
  return DType::kF16;
}

Scalars MakeScalars(const Problem& problem) {
  const DType scale = ScaleType(problem.types.compute);
  Scalars scalars{};
  StoreElement(scalars.alpha, 0, scale, problem.alpha);
  StoreElement(scalars.beta, 0, scale, problem.beta);
  return scalars;
}

}  // namespace gemm
