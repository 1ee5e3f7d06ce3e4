// Freivalds' check of a product that was computed: D r against alpha A (B r) + beta C r +
// bias r for a vector r of random signs, row by row (R. Freivalds, "Probabilistic machines
// can use less running time", IFIP Congress 1977). It reads each matrix once: O(mk + kn + mn)
// operations in f64, or in pairs of f64 for a product that computes in f64. Sums of integers are
// exact, and compared modulo what accumulators wrap at: an s32 D has no tolerance.
//
// A row fails where its residual is larger than its bound. There are two bounds, and
// kernels/check/row_rule.h derives both:
//
// - The possible one holds for every right kernel and any operands, but for a probability of
//   less than 3e-14 a row over the choice of r.
// - The likely one also says that the order of the terms over k has no meaning, and that the
//   roundings of one sum do not all point one way. It is far smaller for a large k. Right
//   products of unusual operands may exceed it.
//
// A wrong element that is off by more than twice the bound of its row is always caught: the
// signs are +-1, so the residual moves by as much. Several wrong elements of one row may cancel:
// two with a probability of at most 1/2, and n equal errors with one of about sqrt(2 / (pi n)).
// Wrong elements of different rows do not.
//
// The check is linear, so it is for products without an activation: see AccumulatorProblem.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "gemm/problem.h"

struct CUstream_st;  // cudaStream_t is CUstream_st*

namespace gemm {

// What a check has found.
struct CheckOutcome {
  // The largest residual of a row, as a multiple of its bound. Above 1: failed.
  double of_likely = 0;
  double of_possible = 0;
  int64_t worst_row = -1;  // with the largest multiple of the likely bound
  // Rows that the check says nothing about: operands or intermediate results may be NaN or
  // infinite there.
  int64_t uncovered_rows = 0;

  bool likely() const { return of_likely <= 1; }
  bool possible() const { return of_possible <= 1; }
};

// A product that has run: D of `operands` is its result. C must still be what it was, so D has
// memory of its own.
struct Check {
  Problem problem;  // without an activation, and with an alpha that is not 0
  Operands operands;
  uint64_t seed = 0;  // of r; whoever made the operands must not know it
  // CheckScratchBytes(problem), 256-byte aligned.
  void* scratch = nullptr;
};

// Scratch memory of a check.
size_t CheckScratchBytes(const Problem& problem);

// The residual of one row, and its two bounds.
struct RowResidual {
  double residual = 0;
  double likely = 0;
  double possible = 0;
  bool covered = true;
};

// Checks in host memory before it returns. `rows`, where given, has room for m residuals.
CheckOutcome CheckHost(const Check& check, RowResidual* rows = nullptr);

// Enqueues a check of a product in device memory. `outcome` is in pinned host memory: it has what
// was found once the stream gets there. Every row of the matrices and of the bias starts on a
// 16-byte boundary. INTERNAL where CUDA refuses.
absl::Status CheckCuda(const Check& check, CheckOutcome* outcome, CUstream_st* stream);

// With an activation, what is checked is op(A) op(B) alone, computed into memory of its own in
// the type of the accumulators; the epilogue is a pass after it. These are the problem of such
// a product, the bytes of its result, and the pass.
Problem AccumulatorProblem(const Problem& problem);
size_t AccumulatorMatrixBytes(const Problem& problem);
// `operands`, with the accumulators as D.
Operands AccumulatorOperands(const Problem& problem, const Operands& operands, void* accumulators);

// D = act(alpha S + beta C + bias), from the accumulators S.
absl::Status FinishHost(const Problem& problem, const Operands& operands, const void* accumulators);
// The same, enqueued.
absl::Status FinishCuda(const Problem& problem, const Operands& operands, void* accumulators,
                        CUstream_st* stream);

}  // namespace gemm
