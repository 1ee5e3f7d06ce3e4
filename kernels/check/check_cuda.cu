// A check on the GPU: each matrix is read once, and the rows are judged by the same functions as
// on the host. One block takes a line along a row of the memory. So few and long lines, as of a
// product with a handful of rows, do not fill the GPU.
#include <algorithm>
#include <cmath>

#include "gemm/check.h"
#include "gemm/scalars.h"
#include "kernels/check/check_plan.h"
#include "kernels/check/line_kernels.cuh"
#include "kernels/core/cuda_status.h"
#include "kernels/epilogue/in_place.h"

namespace gemm {
namespace {

constexpr int kThreads = 256;

unsigned BlocksFor(int64_t count, int64_t of_a_block) {
  return static_cast<unsigned>((count + of_a_block - 1) / of_a_block);
}

__device__ int64_t Index() { return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; }

__global__ void DrawSigns(uint64_t seed, int64_t n, double* r, LineSums* bias) {
  if (Index() < n) r[Index()] = SignOf(seed, Index());
  if (Index() == 0) *bias = LineSums();
}

// B r, and the norms of B's rows.
template <class Sum>
__global__ void JoinRowsOfB(int splits, int64_t k, CheckMemory memory) {
  const int64_t l = Index();
  if (l >= k) return;
  const LineSums sums = JoinParts<Sum>(memory.b_parts, k, splits, l);
  memory.y[l] = sums.dot;
  memory.y_low[l] = sums.low;
  memory.b_norms[l] = Norm(sums);
}

template <class Sum>
__global__ void JoinRowsOfA(int splits, int64_t m, CheckMemory memory) {
  if (Index() < m) JoinParts<Sum>(memory.a_parts, m, splits, Index());
}

// Runs in one block.
__global__ void SumNorms(int64_t k, CheckMemory memory) {
  __shared__ double sums[kThreads];
  double sum = 0;
  for (int64_t l = threadIdx.x; l < k; l += kThreads) sum += memory.b_norms[l];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) *memory.b_norm_sum = sums[0];
}

// Joins two outcomes over different rows. If they are equal, the lower row counts, as on the host.
__device__ CheckOutcome Join(const CheckOutcome& x, const CheckOutcome& y) {
  const bool second =
      y.worst_row >= 0 && (x.worst_row < 0 || y.of_likely > x.of_likely ||
                           (y.of_likely == x.of_likely && y.worst_row < x.worst_row));
  return {.of_likely = second ? y.of_likely : x.of_likely,
          .of_possible = x.of_possible > y.of_possible ? x.of_possible : y.of_possible,
          .worst_row = second ? y.worst_row : x.worst_row,
          .uncovered_rows = x.uncovered_rows + y.uncovered_rows};
}

// The outcome of a block's threads, in thread 0.
__device__ CheckOutcome JoinBlock(const CheckOutcome& own) {
  __shared__ CheckOutcome outcomes[kThreads];
  outcomes[threadIdx.x] = own;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      outcomes[threadIdx.x] = Join(outcomes[threadIdx.x], outcomes[threadIdx.x + half]);
    }
    __syncthreads();
  }
  return outcomes[0];
}

__device__ double LoadBias(const void* bias, DType type, int64_t i) {
  switch (type) {
    case DType::kF64:
      return static_cast<const double*>(bias)[i];
    case DType::kF32:
      return static_cast<const float*>(bias)[i];
    case DType::kF16:
      return __half2float(static_cast<const __half*>(bias)[i]);
    case DType::kS32:
      return static_cast<const int32_t*>(bias)[i];
    default:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(bias)[i]);
  }
}

__global__ void JudgeRows(RowRule rule, int64_t m, const void* bias, DType type,
                          CheckMemory memory) {
  CheckOutcome outcome;
  for (int64_t i = Index(); i < m; i += static_cast<int64_t>(gridDim.x) * kThreads) {
    RowTerms terms{.a = memory.a_parts[i], .d = memory.d[i]};
    if (rule.beta != 0) terms.c = memory.c[i];
    terms.bias = *memory.bias;
    if (rule.bias == BiasAxis::kRows) terms.bias_element = LoadBias(bias, type, i);
    terms.b_norms = *memory.b_norm_sum;
    TakeRow(JudgeRow(rule, terms), i, outcome);
  }
  outcome = JoinBlock(outcome);
  if (threadIdx.x == 0) memory.outcomes[blockIdx.x] = outcome;
}

// Runs in one block. Joins all into the first outcome.
__global__ void JoinOutcomes(int count, CheckMemory memory) {
  const int at = static_cast<int>(threadIdx.x);
  const CheckOutcome outcome = JoinBlock(at < count ? memory.outcomes[at] : CheckOutcome());
  if (at == 0) memory.outcomes[0] = outcome;
}

template <DType kType, class Sum>
void SumTyped(const LineMatrix& x, const DeviceWeights& weights, int splits, bool across,
              LineSums* out, cudaStream_t stream) {
  if (across) {
    const dim3 grid(BlocksFor(x.lines, kLineThreads * kLinesOfAThread),
                    static_cast<unsigned>(splits));
    SumAcross<kType, Sum><<<grid, kLineThreads, 0, stream>>>(x, weights, out);
  } else {
    SumAlong<kType, Sum>
        <<<BlocksFor(x.lines, kLinesOfABlock), kLineThreads, 0, stream>>>(x, weights, out);
  }
}

template <class Sum>
void SumLines(DType type, const LineMatrix& x, const DeviceWeights& weights, int splits,
              bool across, LineSums* out, cudaStream_t stream) {
  const auto sum = [&]<DType kType>() {
    SumTyped<kType, Sum>(x, weights, splits, across, out, stream);
  };
  switch (type) {
    case DType::kF64:
      return sum.template operator()<DType::kF64>();
    case DType::kF32:
      return sum.template operator()<DType::kF32>();
    case DType::kF16:
      return sum.template operator()<DType::kF16>();
    case DType::kBF16:
      return sum.template operator()<DType::kBF16>();
    case DType::kE4M3:
      return sum.template operator()<DType::kE4M3>();
    case DType::kS8:
      return sum.template operator()<DType::kS8>();
    case DType::kS32:
      return sum.template operator()<DType::kS32>();
    default:
      return sum.template operator()<DType::kE5M2>();
  }
}

template <class Sum>
void EnqueueSums(const Problem& p, const Operands& o, uint64_t seed, const CheckMemory& memory,
                 cudaStream_t stream) {
  const DeviceWeights signs{memory.r, nullptr, nullptr};
  const DeviceWeights products{memory.y, memory.y_low, memory.b_norms};
  const int b_splits = p.trans_b ? SplitsFor(p.n) : 1, a_splits = p.trans_a ? SplitsFor(p.k) : 1;
  DrawSigns<<<BlocksFor(p.n, kThreads), kThreads, 0, stream>>>(seed, p.n, memory.r, memory.bias);
  SumLines<Sum>(p.types.b, {o.b, o.ldb, p.k, p.n}, signs, b_splits, p.trans_b, memory.b_parts,
                stream);
  JoinRowsOfB<Sum><<<BlocksFor(p.k, kThreads), kThreads, 0, stream>>>(b_splits, p.k, memory);
  SumNorms<<<1, kThreads, 0, stream>>>(p.k, memory);
  SumLines<Sum>(p.types.a, {o.a, o.lda, p.m, p.k}, products, a_splits, p.trans_a, memory.a_parts,
                stream);
  if (a_splits > 1) {
    JoinRowsOfA<Sum><<<BlocksFor(p.m, kThreads), kThreads, 0, stream>>>(a_splits, p.m, memory);
  }
  SumLines<Sum>(p.types.d, {o.d, o.ldd, p.m, p.n}, signs, 1, false, memory.d, stream);
  if (p.beta != 0) {
    SumLines<Sum>(p.types.d, {o.c, o.ldc, p.m, p.n}, signs, 1, false, memory.c, stream);
  }
  if (p.bias == BiasAxis::kColumns) {
    SumLines<Sum>(p.types.d, {o.bias, p.n, 1, p.n}, signs, 1, false, memory.bias, stream);
  }
}

}  // namespace

absl::Status CheckCuda(const Check& check, CheckOutcome* outcome, CUstream_st* stream) {
  const Problem problem = RoundScalars(check.problem);
  const RowRule rule = MakeRowRule(problem, check.seed);
  CheckMemory memory;
  LayOut(problem, check.scratch, &memory);
  if (rule.pairs) {
    EnqueueSums<PairSum>(problem, check.operands, check.seed, memory, stream);
  } else {
    EnqueueSums<PlainSum>(problem, check.operands, check.seed, memory, stream);
  }
  static_assert(kMaxOutcomes <= kThreads);
  const unsigned blocks = std::min<unsigned>(BlocksFor(problem.m, kThreads), kMaxOutcomes);
  JudgeRows<<<blocks, kThreads, 0, stream>>>(rule, problem.m, check.operands.bias, problem.types.d,
                                             memory);
  JoinOutcomes<<<1, kThreads, 0, stream>>>(static_cast<int>(blocks), memory);
  if (absl::Status status = CudaStatus(cudaGetLastError(), "launch of a check"); !status.ok()) {
    return status;
  }
  return CudaStatus(
      cudaMemcpyAsync(outcome, memory.outcomes, sizeof(*outcome), cudaMemcpyDeviceToHost, stream),
      "copy of a check's outcome");
}

absl::Status FinishCuda(const Problem& given, const Operands& operands, void* accumulators,
                        CUstream_st* stream) {
  const Problem problem = RoundScalars(given);
  const AccumulatorProduct product{AccumulatorProblem(problem),
                                   AccumulatorOperands(problem, operands, accumulators)};
  return FinishFromAccumulators(problem, operands, product, stream);
}

}  // namespace gemm
