#include <cblas.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/host/epilogue.h"
#include "kernels/host/kernels.h"
#include "kernels/host/pack.h"

namespace gemm {
namespace {

// f32 blocks of narrow operands. They are large enough that OpenBLAS runs at full speed. They are
// small enough that the workspace stays at 12 MiB, or at 16 with accumulators of integers or block
// scales.
constexpr int64_t kBlock = 1024;

int64_t BlockElements(int64_t rows, int64_t cols) {
  return std::min(rows, kBlock) * std::min(cols, kBlock);
}

absl::Status CheckRange(absl::string_view field, int64_t value) {
  constexpr int64_t kMax = std::numeric_limits<blasint>::max();
  if (value <= kMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, "; kernel host_openblas takes at most ", kMax));
}

absl::Status CheckRanges(const Problem& problem, const Operands& operands) {
  for (const auto& [field, value] : {std::pair<absl::string_view, int64_t>{"m", problem.m},
                                     {"n", problem.n},
                                     {"k", problem.k},
                                     {"lda", operands.lda},
                                     {"ldb", operands.ldb},
                                     {"ldd", operands.ldd}}) {
    if (const absl::Status status = CheckRange(field, value); !status.ok()) return status;
  }
  return absl::OkStatus();
}

CBLAS_TRANSPOSE Op(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }

void Gemm(const Problem& p, const Operands& o, double beta, double* d) {
  cblas_dgemm(CblasRowMajor, Op(p.trans_a), Op(p.trans_b), static_cast<blasint>(p.m),
              static_cast<blasint>(p.n), static_cast<blasint>(p.k), p.alpha,
              static_cast<const double*>(o.a), static_cast<blasint>(o.lda),
              static_cast<const double*>(o.b), static_cast<blasint>(o.ldb), beta, d,
              static_cast<blasint>(o.ldd));
}

void Gemm(const Problem& p, const Operands& o, double beta, float* d) {
  cblas_sgemm(CblasRowMajor, Op(p.trans_a), Op(p.trans_b), static_cast<blasint>(p.m),
              static_cast<blasint>(p.n), static_cast<blasint>(p.k), static_cast<float>(p.alpha),
              static_cast<const float*>(o.a), static_cast<blasint>(o.lda),
              static_cast<const float*>(o.b), static_cast<blasint>(o.ldb), static_cast<float>(beta),
              d, static_cast<blasint>(o.ldd));
}

// f32 and f64: OpenBLAS reads the stored operands and applies alpha and beta. Bias and
// activation follow in D. It is one call, which is not stopped: OpenBLAS does not promise the same
// bits for parts of D or of k.
template <DType kType>
void MultiplyInPlace(const Problem& problem, const Operands& operands) {
  using Element = typename ElementTraits<kType>::Storage;
  Element* d = static_cast<Element*>(operands.d);
  const Element* c = static_cast<const Element*>(operands.c);
  if (problem.beta != 0 && c != d) {
    for (int64_t i = 0; i < problem.m; ++i) {
      std::copy_n(c + i * operands.ldc, problem.n, d + i * operands.ldd);
    }
  }
  Gemm(problem, operands, problem.beta, d);
  if (problem.bias == BiasAxis::kNone && problem.activation == Activation::kNone) return;
  Problem rest = problem;
  rest.alpha = 1;
  rest.beta = 0;
  for (int64_t i = 0; i < problem.m; ++i) {
    FinishRow<kType>(rest, operands, d + i * operands.ldd, i, 0, problem.n);
  }
}

// f32 holds the sum of a block's products of s8 exactly: 1024 * 128 * 128 is 2^24.
static_assert(kBlock * 128 * 128 <= int64_t{1} << 24);

bool OfIntegers(const Problem& problem) { return problem.types.compute == Compute::kS32; }

// Adds the products of a block of k to the accumulators; `first`: to zeros.
void AddIntegers(const float* products, int64_t count, bool first, WrappingS32* accumulators) {
  if (first) std::fill_n(accumulators, count, WrappingS32());
  for (int64_t i = 0; i < count; ++i) accumulators[i] += WrappingS32(products[i]);
}

// Scales the products of a block of k that begins at `p`, and adds them to the accumulators; those
// of the first block, to zeros.
void AddScaled(const Launch& launch, const float* products, int64_t p, int64_t row, int64_t rows,
               int64_t col, int64_t cols, float* accumulators) {
  const Problem& problem = launch.problem;
  const int64_t block = p / kScaleBlock;
  // Columns that share a scale.
  const int64_t shared = problem.scales_b == ScaleBlocks::kTiles ? kScaleBlock : 1;
  if (p == 0) std::fill_n(accumulators, rows * cols, 0.0f);
  for (int64_t i = 0; i < rows; ++i) {
    const double of_a = ScaleOf(problem.scales_a, launch.operands.scales_a, row + i, block);
    for (int64_t j = 0; j < cols;) {
      const int64_t end = std::min(cols, (col + j) / shared * shared + shared - col);
      const double of_b = ScaleOf(problem.scales_b, launch.operands.scales_b, col + j, block);
      const auto scale = static_cast<float>(of_a * of_b);
      for (; j < end; ++j) accumulators[i * cols + j] += scale * products[i * cols + j];
    }
  }
}

// 16- and 8-bit operands, block by block through f32. Stopped() between two of them.
absl::Status MultiplyWidened(const Launch& launch) {
  const Problem& problem = launch.problem;
  const bool integers = OfIntegers(problem), scaled = HasBlockScales(problem);
  const int64_t step = scaled ? kScaleBlock : kBlock;
  const OperandView a = ViewA(problem, launch.operands);
  const OperandView b = ViewB(problem, launch.operands);
  float* const a_block = static_cast<float*>(launch.workspace.data);
  float* const b_block = a_block + BlockElements(problem.m, problem.k);
  float* const accumulators = b_block + BlockElements(problem.k, problem.n);
  float* const scaled_sums = accumulators + BlockElements(problem.m, problem.n);
  auto* const sums = reinterpret_cast<WrappingS32*>(scaled_sums);
  for (int64_t col = 0; col < problem.n; col += kBlock) {
    const int64_t cols = std::min(kBlock, problem.n - col);
    for (int64_t row = 0; row < problem.m; row += kBlock) {
      const int64_t rows = std::min(kBlock, problem.m - row);
      for (int64_t p = 0; p < problem.k; p += step) {
        if (IsStopped(launch)) return Stopped();
        const int64_t depth = std::min(step, problem.k - p);
        PackBlock(a, row, rows, p, depth, a_block, depth);
        PackBlock(b, p, depth, col, cols, b_block, cols);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<blasint>(rows),
                    static_cast<blasint>(cols), static_cast<blasint>(depth), 1.0f, a_block,
                    static_cast<blasint>(depth), b_block, static_cast<blasint>(cols),
                    p == 0 || integers || scaled ? 0.0f : 1.0f, accumulators,
                    static_cast<blasint>(cols));
        if (integers) AddIntegers(accumulators, rows * cols, p == 0, sums);
        if (scaled) AddScaled(launch, accumulators, p, row, rows, col, cols, scaled_sums);
      }
      VisitDType(problem.types.d, [&]<DType kD>() {
        const auto finish = [&](const auto* block) {
          for (int64_t i = 0; i < rows; ++i) {
            FinishRow<kD>(problem, launch.operands, block + i * cols, row + i, col, cols);
          }
        };
        if (integers) return finish(sums);
        finish(scaled ? scaled_sums : accumulators);
      });
    }
  }
  return absl::OkStatus();
}

}  // namespace

size_t HostOpenblasWorkspace(const Problem& problem) {
  if (SizeOf(problem.types.a) > 2) return 0;
  const int64_t elements = BlockElements(problem.m, problem.k) +
                           BlockElements(problem.k, problem.n) +
                           BlockElements(problem.m, problem.n) *
                               (OfIntegers(problem) || HasBlockScales(problem) ? 2 : 1);
  return static_cast<size_t>(elements) * sizeof(float);
}

absl::Status LaunchHostOpenblas(const Launch& launch) {
  const absl::Status in_range = CheckRanges(launch.problem, launch.operands);
  if (!in_range.ok()) return in_range;
  switch (launch.problem.types.a) {
    case DType::kF64:
      MultiplyInPlace<DType::kF64>(launch.problem, launch.operands);
      break;
    case DType::kF32:
      MultiplyInPlace<DType::kF32>(launch.problem, launch.operands);
      break;
    default:
      return MultiplyWidened(launch);
  }
  return absl::OkStatus();
}

}  // namespace gemm
