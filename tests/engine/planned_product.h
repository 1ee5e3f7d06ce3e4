// A product as a plan describes it, computed element by element.
#pragma once

#include <cstdint>
#include <vector>

#include "server/engine/job/plan.h"

namespace gemmd {

// A matrix of a job, stored as its shape says, with a value for each element.
struct Stored {
  Shape shape;
  std::vector<float> values;  // without gaps between lines

  float& at(int64_t row, int64_t col) {
    return values[shape.column_major ? col * shape.rows + row : row * shape.cols + col];
  }
  OperandMemory memory() const { return {values.data(), shape.line_elements()}; }
};

inline Stored Fill(const Shape& shape, int first) {
  Stored stored{shape, std::vector<float>(shape.rows * shape.cols)};
  for (size_t i = 0; i < stored.values.size(); ++i) {
    stored.values[i] = static_cast<float>(first + static_cast<int>(i) * 3 % 17);
  }
  return stored;
}

// The product as a kernel computes it: everything is row-major here.
inline void Multiply(const gemm::Problem& p, const gemm::Operands& o) {
  const auto* a = static_cast<const float*>(o.a);
  const auto* b = static_cast<const float*>(o.b);
  const auto* c = static_cast<const float*>(o.c);
  const auto* bias = static_cast<const float*>(o.bias);
  auto* d = static_cast<float*>(o.d);
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < p.k; ++l) {
        sum += (p.trans_a ? a[l * o.lda + i] : a[i * o.lda + l]) *
               (p.trans_b ? b[j * o.ldb + l] : b[l * o.ldb + j]);
      }
      float value = static_cast<float>(p.alpha) * sum;
      if (p.beta != 0) value += static_cast<float>(p.beta) * c[i * o.ldc + j];
      if (p.bias == gemm::BiasAxis::kColumns) value += bias[j];
      if (p.bias == gemm::BiasAxis::kRows) value += bias[i];
      d[i * o.ldd + j] = value;
    }
  }
}

// Transposed operands, and storage orders.
struct PlanOrder {
  bool transpose_a, transpose_b, a_columns, b_columns, d_columns;

  static constexpr int kCount = 32;
  static PlanOrder Of(int bits) {
    return {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0};
  }
};

}  // namespace gemmd
