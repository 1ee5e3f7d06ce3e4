#include <algorithm>

#include "kernels/host/epilogue.h"
#include "kernels/host/kernels.h"
#include "kernels/host/pack.h"

namespace gemm {
namespace {

// A block of accumulators, and the panels of A and B that are multiplied into it, all in
// double. Together they take 288 KiB.
constexpr int64_t kBlockM = 64;
constexpr int64_t kBlockN = 128;
constexpr int64_t kBlockK = 128;
static_assert(kBlockK == kScaleBlock);

struct Scratch {
  double accumulators[kBlockM][kBlockN];
  double a[kBlockM][kBlockK];
  double b[kBlockK][kBlockN];
};

// With block scales: `sums` adds up the scaled blocks of k.
struct ScaledScratch {
  Scratch block;
  double sums[kBlockM][kBlockN];
};

// accumulators += a * b, for the block's first `rows` rows and `depth` steps of k. It takes
// four steps at a time, so that a row of accumulators is loaded once for four. The panels
// hold zeros up to the next multiple of four.
void MultiplyBlock(Scratch& s, int64_t rows, int64_t depth) {
  for (int64_t i = 0; i < rows; ++i) {
    double* __restrict accumulators = s.accumulators[i];
    for (int64_t p = 0; p < depth; p += 4) {
      const double a0 = s.a[i][p], a1 = s.a[i][p + 1], a2 = s.a[i][p + 2], a3 = s.a[i][p + 3];
      const double* __restrict b0 = s.b[p];
      const double* __restrict b1 = s.b[p + 1];
      const double* __restrict b2 = s.b[p + 2];
      const double* __restrict b3 = s.b[p + 3];
      for (int64_t j = 0; j < kBlockN; ++j) {
        accumulators[j] = (((accumulators[j] + a0 * b0[j]) + a1 * b1[j]) + a2 * b2[j]) + a3 * b3[j];
      }
    }
  }
}

// Computes the accumulators of the block of D at (row, col), over k from `begin` to `end`. If the
// launch is stopped meanwhile, they have any value: k may be long.
void AccumulateBlock(const Launch& launch, const OperandView& a, const OperandView& b,
                     int64_t begin, int64_t end, int64_t row, int64_t rows, int64_t col,
                     int64_t cols, Scratch& s) {
  std::fill_n(&s.accumulators[0][0], kBlockM * kBlockN, 0.0);
  for (int64_t p = begin; p < end && !IsStopped(launch); p += kBlockK) {
    const int64_t depth = std::min(kBlockK, end - p);
    if (depth < kBlockK || cols < kBlockN) {
      std::fill_n(&s.a[0][0], kBlockM * kBlockK, 0.0);
      std::fill_n(&s.b[0][0], kBlockK * kBlockN, 0.0);
    }
    PackBlock(a, row, rows, p, depth, &s.a[0][0], kBlockK);
    PackBlock(b, p, depth, col, cols, &s.b[0][0], kBlockN);
    MultiplyBlock(s, rows, depth);
  }
}

// The same with block scales: the accumulators of each block of k are scaled before they are added.
void AccumulateScaledBlock(const Launch& launch, const OperandView& a, const OperandView& b,
                           int64_t row, int64_t rows, int64_t col, int64_t cols, ScaledScratch& s) {
  const Problem& problem = launch.problem;
  std::fill_n(&s.sums[0][0], kBlockM * kBlockN, 0.0);
  for (int64_t p = 0; p < problem.k && !IsStopped(launch); p += kBlockK) {
    AccumulateBlock(launch, a, b, p, std::min(problem.k, p + kBlockK), row, rows, col, cols,
                    s.block);
    for (int64_t i = 0; i < rows; ++i) {
      const double of_a = ScaleOf(problem.scales_a, launch.operands.scales_a, row + i, p / kBlockK);
      for (int64_t j = 0; j < cols; ++j) {
        const double of_b =
            ScaleOf(problem.scales_b, launch.operands.scales_b, col + j, p / kBlockK);
        s.sums[i][j] += of_a * of_b * s.block.accumulators[i][j];
      }
    }
  }
  std::copy_n(&s.sums[0][0], kBlockM * kBlockN, &s.block.accumulators[0][0]);
}

// Turns a row of accumulators into a row of D.
template <DType kD>
void Finish(const Launch& launch, const double* accumulators, int64_t row, int64_t col,
            int64_t cols) {
  if (launch.problem.types.compute == Compute::kS32) {
    WrappingS32 wrapped[kBlockN];
    std::transform(accumulators, accumulators + cols, wrapped,
                   [](double sum) { return WrappingS32(sum); });
    FinishRow<kD>(launch.problem, launch.operands, wrapped, row, col, cols);
  } else {
    FinishRow<kD>(launch.problem, launch.operands, accumulators, row, col, cols);
  }
}

}  // namespace

size_t HostReferenceWorkspace(const Problem& problem) {
  return HasBlockScales(problem) ? sizeof(ScaledScratch) : sizeof(Scratch);
}

absl::Status LaunchHostReference(const Launch& launch) {
  const Problem& problem = launch.problem;
  const OperandView a = ViewA(problem, launch.operands);
  const OperandView b = ViewB(problem, launch.operands);
  Scratch& scratch = *static_cast<Scratch*>(launch.workspace.data);
  for (int64_t col = 0; col < problem.n; col += kBlockN) {
    const int64_t cols = std::min(kBlockN, problem.n - col);
    for (int64_t row = 0; row < problem.m; row += kBlockM) {
      const int64_t rows = std::min(kBlockM, problem.m - row);
      if (HasBlockScales(problem)) {
        AccumulateScaledBlock(launch, a, b, row, rows, col, cols,
                              *static_cast<ScaledScratch*>(launch.workspace.data));
      } else {
        AccumulateBlock(launch, a, b, 0, problem.k, row, rows, col, cols, scratch);
      }
      if (IsStopped(launch)) return Stopped();
      VisitDType(problem.types.d, [&]<DType kD>() {
        for (int64_t i = 0; i < rows; ++i) {
          Finish<kD>(launch, scratch.accumulators[i], row + i, col, cols);
        }
      });
    }
  }
  return absl::OkStatus();
}

}  // namespace gemm
