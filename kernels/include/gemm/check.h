// Freivalds' check of a computed product: D r against alpha A (B r) + beta C r + bias r for a
// vector r of random signs, row by row (R. Freivalds, "Probabilistic machines can use less running
// time", IFIP Congress 1977). It reads each matrix once: O(mk + kn + mn) operations in f64, or in
// pairs of f64 for a product that computes in f64. Sums of integers are exact. They are compared
// modulo 2^32, where accumulators wrap: an s32 D has no tolerance.
//
// A row fails if its residual is larger than its bound. There are two bounds, and
// kernels/check/row_rule.h derives both:
//
// - The possible one holds for every right kernel and any operands. Over the choice of r, it fails
//   with a probability of less than 3e-14 a row.
// - The likely one also says that the order of the terms over k has no meaning, and that the
//   roundings of one sum do not all point one way. It is far smaller for a large k. Right
//   products of unusual operands may exceed it.
//
// One wrong element in a row is always caught if it is off by more than twice the row's bound: the
// signs are +-1, so the residual moves by the element's whole error. Several wrong elements of one
// row may cancel: two with a probability of at most 1/2, and n equal errors with a probability of
// about sqrt(2 / (pi n)). Wrong elements of different rows do not cancel.
//
// The check is linear, so it is for products without an activation: see AccumulatorProblem.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "gemm/problem.h"

struct CUstream_st;  // cudaStream_t is CUstream_st*

namespace gemm {

// The result of a check.
struct CheckOutcome {
  // The largest residual of a row, as a multiple of each of its bounds. Above 1: failed.
  double of_likely = 0;
  double of_possible = 0;
  int64_t worst_row = -1;  // with the largest multiple of the likely bound
  // Rows without a verdict: their operands or intermediate results may be NaN or infinite.
  int64_t uncovered_rows = 0;

  bool likely() const { return of_likely <= 1; }
  bool possible() const { return of_possible <= 1; }
};

// A product that has run: D of `operands` is its result. C must be unchanged since, so D may not
// share its memory.
struct Check {
  Problem problem;  // without an activation, and with an alpha that is not 0
  Operands operands;
  uint64_t seed = 0;  // of r; unknown to the maker of the operands
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

// Checks a product in host memory, and returns when it is done. `rows`, if not null, has room for m
// residuals.
CheckOutcome CheckHost(const Check& check, RowResidual* rows = nullptr);

// Enqueues a check of a product in device memory. `outcome` is in pinned host memory. It is set
// once the stream has run the check. Every row of the matrices and of the bias starts on a 16-byte
// boundary. INTERNAL if CUDA refuses.
absl::Status CheckCuda(const Check& check, CheckOutcome* outcome, CUstream_st* stream);

// With an activation, only op(A) op(B) is checked. It is computed into memory of its own, in the
// type of the accumulators, and a separate pass runs the epilogue. These give the problem of that
// product, the bytes of its result, and the pass.
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
