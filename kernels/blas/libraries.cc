#include "kernels/blas/libraries.h"

#include <cuda_runtime_api.h>

#include "kernels/blas/vocabulary.h"
#include "kernels/core/cuda_status.h"

namespace gemm {
namespace {

// The size that cuBLAS recommends for Hopper.
constexpr size_t kWorkspaceBytes = size_t{32} << 20;

// Reductions of split products in the accumulator's type: rounding partial sums to a 16-bit output
// would cost accuracy that the caller did not give up.
constexpr auto kMathMode = static_cast<cublasMath_t>(
    CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);

}  // namespace

void Libraries::FreeDevice::operator()(void* data) const { cudaFree(data); }

Workspace Libraries::workspace() const { return {workspace_.get(), kWorkspaceBytes}; }

absl::StatusOr<std::shared_ptr<Libraries>> Libraries::Create(CUstream_st* stream) {
  std::shared_ptr<Libraries> libraries(new Libraries);
  void* workspace = nullptr;
  absl::Status status =
      CudaStatus(cudaMalloc(&workspace, kWorkspaceBytes), "allocation of the cuBLAS workspace");
  if (!status.ok()) return status;
  libraries->workspace_.reset(workspace);

  cublasHandle_t cublas = nullptr;
  status = CublasStatus(cublasCreate(&cublas), "cublasCreate");
  if (!status.ok()) return status;
  libraries->cublas_.reset(cublas);
  cublasLtHandle_t cublas_lt = nullptr;
  status = CublasStatus(cublasLtCreate(&cublas_lt), "cublasLtCreate");
  if (!status.ok()) return status;
  libraries->cublas_lt_.reset(cublas_lt);

  // Setting the stream gives cuBLAS its default workspace: ours comes after.
  status = CublasStatus(cublasSetStream(cublas, stream), "cublasSetStream");
  if (!status.ok()) return status;
  status =
      CublasStatus(cublasSetWorkspace(cublas, workspace, kWorkspaceBytes), "cublasSetWorkspace");
  if (!status.ok()) return status;
  status = CublasStatus(cublasSetMathMode(cublas, kMathMode), "cublasSetMathMode");
  if (!status.ok()) return status;
  return libraries;
}

absl::StatusOr<LtPlan*> Libraries::PlanFor(const Problem& problem, const Operands& operands,
                                           int64_t algorithm) {
  const LtPlanKey key = LtPlanKey::Of(problem, operands, algorithm);
  if (LtPlan* known = plans_.Find(key)) return known;
  absl::StatusOr<LtPlan> made =
      MakeLtPlan(cublas_lt(), problem, operands, kWorkspaceBytes, algorithm);
  if (!made.ok()) return made.status();
  return &plans_.Insert(key, *made);
}

absl::StatusOr<std::shared_ptr<Libraries>> CreateLibraries(CUstream_st* stream) {
  return Libraries::Create(stream);
}

}  // namespace gemm
