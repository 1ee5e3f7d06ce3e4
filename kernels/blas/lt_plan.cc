#include "kernels/blas/lt_plan.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/blas/vocabulary.h"
#include "kernels/epilogue/in_place.h"

namespace gemm {
namespace {

// Collects the first error of a row of calls, so that they read as one.
class Calls {
 public:
  void Add(cublasStatus_t status, absl::string_view what) {
    if (status_.ok()) status_ = CublasStatus(status, what);
  }
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

template <class T>
void SetProduct(Calls& calls, LtPlan& plan, cublasLtMatmulDescAttributes_t attribute,
                const T& value) {
  calls.Add(cublasLtMatmulDescSetAttribute(&plan.product, attribute, &value, sizeof(value)),
            "cublasLtMatmulDescSetAttribute");
}

template <class T>
void SetPreference(Calls& calls, cublasLtMatmulPreferenceOpaque_t& preference,
                   cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  calls.Add(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof(value)),
            "cublasLtMatmulPreferenceSetAttribute");
}

// cuBLASLt's epilogue for ours, if it has one. Its bias runs along the rows of the column-major
// product, which are our columns. Its GELU is the tanh approximation, which ours is not. Its relu
// turns NaN into 0.
// Some of its kernels round the product to a narrow D before they add the bias. There we add the
// bias ourselves. We also do so for products of fp8, whose bias is never f32, and of s8, which have
// none in s32.
std::optional<cublasLtEpilogue_t> FusedEpilogue(const Problem& problem) {
  if (!HasBiasOrActivation(problem)) {
    // f64 does not have even the plain one.
    if (problem.types.d == DType::kF64) return std::nullopt;
    return CUBLASLT_EPILOGUE_DEFAULT;
  }
  const bool bias_alone =
      problem.bias == BiasAxis::kColumns && problem.activation == Activation::kNone;
  if (!bias_alone || problem.types.d == DType::kF64 || NeedsAccumulatorScratch(problem) ||
      SizeOf(problem.types.a) == 1) {
    return std::nullopt;
  }
  return CUBLASLT_EPILOGUE_BIAS;
}

// Row-major D = op(A) op(B) is column-major D' = op(B)' op(A)': the operands
// change places, and each row-major matrix is its transpose in column-major.
absl::Status Describe(const Problem& p, const Operands& o, LtPlan& plan) {
  const cudaDataType_t d_type = CublasType(p.types.d);
  const int64_t ldc = p.beta == 0 ? o.ldd : o.ldc;
  Calls calls;
  calls.Add(cublasLtMatmulDescInit(&plan.product, CublasCompute(p.types.compute),
                                   CublasType(ScaleType(p.types.compute))),
            "cublasLtMatmulDescInit");
  SetProduct(calls, plan, CUBLASLT_MATMUL_DESC_TRANSA, CublasOp(p.trans_b));
  SetProduct(calls, plan, CUBLASLT_MATMUL_DESC_TRANSB, CublasOp(p.trans_a));
  const auto layout = [&](cublasLtMatrixLayoutOpaque_t& out, cudaDataType_t type, int64_t rows,
                          int64_t cols, int64_t ld) {
    calls.Add(cublasLtMatrixLayoutInit(&out, type, static_cast<uint64_t>(rows),
                                       static_cast<uint64_t>(cols), ld),
              "cublasLtMatrixLayoutInit");
  };
  layout(plan.a, CublasType(p.types.b), p.trans_b ? p.k : p.n, p.trans_b ? p.n : p.k, o.ldb);
  layout(plan.b, CublasType(p.types.a), p.trans_a ? p.m : p.k, p.trans_a ? p.k : p.m, o.lda);
  layout(plan.c, d_type, p.n, p.m, ldc);
  layout(plan.d, d_type, p.n, p.m, o.ldd);
  return calls.status();
}

absl::Status SetEpilogue(const Problem& problem, const Operands& operands,
                         cublasLtEpilogue_t epilogue, LtPlan& plan) {
  Calls calls;
  SetProduct(calls, plan, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  if (problem.bias != BiasAxis::kNone) {
    const int32_t type = CublasType(problem.types.d);
    SetProduct(calls, plan, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type);
    SetProduct(calls, plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  }
  return calls.status();
}

bool MayLeaveOutEndOfK(const cublasLtMatmulAlgo_t& algorithm, int64_t k) {
  if (k % kLargestTileK == 0) return false;
  int32_t parts = 0;
  size_t written = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoConfigGetAttribute(
      &algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof(parts), &written);
  return status != CUBLAS_STATUS_SUCCESS || parts > 1;
}

// At most `count` of the heuristic's answers that are right at any k, best guess first, for these
// ways to add up parts of k. Empty if it has none.
absl::StatusOr<std::vector<cublasLtMatmulAlgo_t>> AskHeuristic(cublasLtHandle_t handle,
                                                               size_t workspace_bytes,
                                                               uint32_t reductions, int64_t k,
                                                               LtPlan& plan, int count) {
  constexpr uint32_t kAlignment = kRowAlignment;
  constexpr int kMostLeftOut = 16;
  cublasLtMatmulPreferenceOpaque_t preference;
  Calls calls;
  calls.Add(cublasLtMatmulPreferenceInit(&preference), "cublasLtMatmulPreferenceInit");
  SetPreference(calls, preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                static_cast<uint64_t>(workspace_bytes));
  SetPreference(calls, preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    SetPreference(calls, preference, attribute, kAlignment);
  }
  if (!calls.status().ok()) return calls.status();
  const int asked = k % kLargestTileK == 0 ? count : count + kMostLeftOut;
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(asked));
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, &plan.product, &plan.a, &plan.b, &plan.c, &plan.d,
                                     &preference, asked, results.data(), &found);
  if (status != CUBLAS_STATUS_SUCCESS && status != CUBLAS_STATUS_NOT_SUPPORTED) {
    return CublasStatus(status, "cublasLtMatmulAlgoGetHeuristic");
  }
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < found; ++i) {
    const cublasLtMatmulHeuristicResult_t& result = results[static_cast<size_t>(i)];
    if (result.state != CUBLAS_STATUS_SUCCESS || MayLeaveOutEndOfK(result.algo, k)) continue;
    algorithms.push_back(result.algo);
    if (static_cast<int>(algorithms.size()) == count) break;
  }
  return algorithms;
}

// UNIMPLEMENTED where there is none.
absl::StatusOr<std::vector<cublasLtMatmulAlgo_t>> ChooseAlgorithms(cublasLtHandle_t handle,
                                                                   size_t workspace_bytes,
                                                                   int64_t k, LtPlan& plan,
                                                                   int count) {
  // As in libraries.cc: no reduction in the output's type.
  constexpr uint32_t kWhole = CUBLASLT_REDUCTION_SCHEME_NONE;
  constexpr uint32_t kAny = kWhole | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  for (const uint32_t reductions : {kAny, kWhole}) {
    auto algorithms = AskHeuristic(handle, workspace_bytes, reductions, k, plan, count);
    if (!algorithms.ok() || !algorithms->empty()) return algorithms;
  }
  return absl::UnimplementedError("cuBLASLt has no algorithm for this problem");
}

// Plans for `problem` as it is, with the fused epilogue where one is given.
absl::StatusOr<std::vector<LtPlan>> PlansWith(std::optional<cublasLtEpilogue_t> epilogue,
                                              cublasLtHandle_t handle, const Problem& problem,
                                              const Operands& operands, size_t workspace_bytes,
                                              int count) {
  LtPlan plan{};
  absl::Status status = Describe(problem, operands, plan);
  if (status.ok() && epilogue) status = SetEpilogue(problem, operands, *epilogue, plan);
  if (!status.ok()) return status;
  plan.fused_epilogue = epilogue.has_value();
  const auto algorithms = ChooseAlgorithms(handle, workspace_bytes, problem.k, plan, count);
  if (!algorithms.ok()) return algorithms.status();
  std::vector<LtPlan> plans;
  for (const cublasLtMatmulAlgo_t& algorithm : *algorithms) {
    plan.algorithm = algorithm;
    plans.push_back(plan);
  }
  return plans;
}

// The strides of a batch, for every call of it.
absl::Status SetStrides(const Problem& problem, const Operands& operands, LtPlan& plan) {
  Calls calls;
  for (const auto& [layout, stride] :
       {std::pair{&plan.a, operands.stride_b},
        {&plan.b, operands.stride_a},
        {&plan.c, problem.beta == 0 ? operands.stride_d : operands.stride_c},
        {&plan.d, operands.stride_d}}) {
    calls.Add(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                               &stride, sizeof(stride)),
              "cublasLtMatrixLayoutSetAttribute");
  }
  if (plan.fused_epilogue && problem.bias != BiasAxis::kNone) {
    SetProduct(calls, plan, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, operands.stride_bias);
  }
  return calls.status();
}

// A batch needs more workspace if k is split, and the algorithm may refuse it. Then fewer products
// go into a call, down to one.
absl::Status TakeBatch(cublasLtHandle_t handle, const Problem& problem, const Operands& operands,
                       size_t workspace_bytes, LtPlan& plan) {
  absl::Status status = SetStrides(problem, operands, plan);
  for (int64_t batch = problem.batch; status.ok() && batch > 1; batch = (batch + 1) / 2) {
    status = SetBatch(plan, batch);
    if (!status.ok()) return status;
    cublasLtMatmulHeuristicResult_t result{};
    const cublasStatus_t taken = cublasLtMatmulAlgoCheck(
        handle, &plan.product, &plan.a, &plan.b, &plan.c, &plan.d, &plan.algorithm, &result);
    if (taken == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= workspace_bytes) return status;
  }
  return status.ok() ? SetBatch(plan, 1) : status;
}

}  // namespace

LtPlanKey LtPlanKey::Of(const Problem& p, const Operands& o, int64_t algorithm) {
  return {
      .m = p.m,
      .n = p.n,
      .k = p.k,
      .lda = o.lda,
      .ldb = o.ldb,
      .ldc = p.beta == 0 ? o.ldd : o.ldc,
      .ldd = o.ldd,
      .a = p.types.a,
      .b = p.types.b,
      .d = p.types.d,
      .compute = p.types.compute,
      .trans_a = p.trans_a,
      .trans_b = p.trans_b,
      .bias = p.bias,
      .activation = p.activation,
      .batch = p.batch,
      .stride_a = o.stride_a,
      .stride_b = o.stride_b,
      .stride_c = p.beta == 0 ? o.stride_d : o.stride_c,
      .stride_bias = o.stride_bias,
      .stride_d = o.stride_d,
      .algorithm = algorithm,
  };
}

absl::StatusOr<std::vector<LtPlan>> MakeLtPlans(cublasLtHandle_t handle, const Problem& problem,
                                                const Operands& operands, size_t workspace_bytes,
                                                int count) {
  if (const auto epilogue = FusedEpilogue(problem)) {
    auto plans = PlansWith(epilogue, handle, problem, operands, workspace_bytes, count);
    // Without a fused epilogue there may be an algorithm still.
    if (!absl::IsUnimplemented(plans.status()) || !HasBiasOrActivation(problem)) return plans;
  }
  return PlansWith(std::nullopt, handle, problem, operands, workspace_bytes, count);
}

absl::StatusOr<LtPlan> MakeLtPlan(cublasLtHandle_t handle, const Problem& problem,
                                  const Operands& operands, size_t workspace_bytes,
                                  int64_t algorithm) {
  const auto plans =
      MakeLtPlans(handle, problem, operands, workspace_bytes, static_cast<int>(algorithm) + 1);
  if (!plans.ok()) return plans.status();
  LtPlan plan = plans->back();
  if (problem.batch == 1) return plan;
  const absl::Status status = TakeBatch(handle, problem, operands, workspace_bytes, plan);
  if (!status.ok()) return status;
  return plan;
}

absl::Status SetBias(LtPlan& plan, const void* bias) {
  Calls calls;
  SetProduct(calls, plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  return calls.status();
}

absl::Status SetBatch(LtPlan& plan, int64_t batch) {
  const auto count = static_cast<int32_t>(batch);
  Calls calls;
  for (cublasLtMatrixLayoutOpaque_t* layout : {&plan.a, &plan.b, &plan.c, &plan.d}) {
    calls.Add(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                               sizeof(count)),
              "cublasLtMatrixLayoutSetAttribute");
  }
  plan.batch = batch;
  return calls.status();
}

}  // namespace gemm
