// How the epilogue finds the matrices of a batch.
#pragma once

#include <cstdint>

#include "gemm/problem.h"

namespace gemm {

// Elements from one product to the next. 0 where there is no such matrix: its null pointer stays.
struct BatchStrides {
  int64_t c, bias, d;
};

inline BatchStrides StridesOf(const Operands& operands) {
  return {operands.stride_c, operands.stride_bias, operands.stride_d};
}

}  // namespace gemm
