// Copies a block of op(A) or op(B) into dense scratch memory of a wider type.
#pragma once

#include <cstdint>

#include "gemm/problem.h"
#include "kernels/numeric/element.h"

namespace gemm {

// op(X) for a stored row-major matrix X: its elements and how to step.
struct OperandView {
  const void* data;
  DType type;
  int64_t ld;
  bool transposed;
};

// Writes op(X)[row, row + rows) x [col, col + cols) to `out`, row-major with
// `out_ld` elements from row to row.
template <class Wide>
void PackBlock(const OperandView& x, int64_t row, int64_t rows, int64_t col, int64_t cols,
               Wide* out, int64_t out_ld) {
  VisitDType(x.type, [&]<DType kType>() {
    using Traits = ElementTraits<kType>;
    const auto* data = static_cast<const typename Traits::Storage*>(x.data);
    if (x.transposed) {
      for (int64_t j = 0; j < cols; ++j) {
        const auto* line = data + (col + j) * x.ld + row;
        for (int64_t i = 0; i < rows; ++i) {
          out[i * out_ld + j] = static_cast<Wide>(Traits::Load(line[i]));
        }
      }
      return;
    }
    for (int64_t i = 0; i < rows; ++i) {
      const auto* line = data + (row + i) * x.ld + col;
      for (int64_t j = 0; j < cols; ++j) {
        out[i * out_ld + j] = static_cast<Wide>(Traits::Load(line[j]));
      }
    }
  });
}

inline OperandView ViewA(const Problem& problem, const Operands& operands) {
  return {operands.a, problem.types.a, operands.lda, problem.trans_a};
}
inline OperandView ViewB(const Problem& problem, const Operands& operands) {
  return {operands.b, problem.types.b, operands.ldb, problem.trans_b};
}

}  // namespace gemm
