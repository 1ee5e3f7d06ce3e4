// A right kernel in the arithmetic of its types: one chain of additions along k, each
// rounded as the hardware does.
#pragma once

#include "tests/kernels/product_case.h"

namespace gemm::testing {

// Computes D of `data`. f64 and f32 accumulators, and those of f16 arithmetic, round to
// nearest. Tensor cores truncate: operands of TF32 to 10 bits, and accumulators in f32 after every
// addition. Accumulators of fp8 are truncated to 13 bits, and added to f32 after 128 products.
// f32x3 adds three products of TF32 numbers for one, and rounds to nearest after 32.
void RunEmulated(ProductData& data);

}  // namespace gemm::testing
