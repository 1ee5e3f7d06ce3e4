// The handles of cuBLAS and cuBLASLt.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>

#include <memory>
#include <type_traits>

#include "absl/status/statusor.h"
#include "gemm/libraries.h"
#include "kernels/blas/lru_cache.h"
#include "kernels/blas/lt_plan.h"

namespace gemm {

// Bound to one stream; not thread-safe. cuBLAS and cuBLASLt share the
// workspace, which is safe because their work is in order on that stream.
class Libraries {
 public:
  static absl::StatusOr<std::shared_ptr<Libraries>> Create(CUstream_st* stream);

  Libraries(const Libraries&) = delete;
  Libraries& operator=(const Libraries&) = delete;

  cublasHandle_t cublas() const { return cublas_.get(); }
  cublasLtHandle_t cublas_lt() const { return cublas_lt_.get(); }
  Workspace workspace() const;

  // The plan for a problem with this one of cuBLASLt's algorithms (lt_plan.h), from the
  // cache or new.
  absl::StatusOr<LtPlan*> PlanFor(const Problem& problem, const Operands& operands,
                                  int64_t algorithm);

 private:
  Libraries() : plans_(kMaxPlans) {}

  static constexpr size_t kMaxPlans = 1024;

  struct DestroyCublas {
    void operator()(cublasHandle_t handle) const { cublasDestroy(handle); }
  };
  struct DestroyCublasLt {
    void operator()(cublasLtHandle_t handle) const { cublasLtDestroy(handle); }
  };
  struct FreeDevice {
    void operator()(void* data) const;
  };

  // Destroyed in reverse order: the workspace outlives the handles.
  std::unique_ptr<void, FreeDevice> workspace_;
  std::unique_ptr<std::remove_pointer_t<cublasHandle_t>, DestroyCublas> cublas_;
  std::unique_ptr<std::remove_pointer_t<cublasLtHandle_t>, DestroyCublasLt> cublas_lt_;
  LruCache<LtPlanKey, LtPlan> plans_;
};

}  // namespace gemm
