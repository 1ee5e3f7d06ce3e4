// Batches against their products alone, for the tests of every kernel that takes them.
#pragma once

#include <random>
#include <string>

#include "tests/kernels/product_case.h"

namespace gemm::testing {

// A random case of `batch` products. Some operands are shared.
ProductCase RandomBatch(const Types& types, int64_t m, int64_t n, int64_t k, int64_t batch,
                        std::mt19937_64& random);

// Runs a batch and then each of its products, or about `most_alone` of them, by itself. Checks that
// the batch is OK, that every product has the same bits as alone, and that no byte beside D's
// elements and no operand changed. Returns the first fault, or an empty string.
std::string CheckBatchOf(const Kernel& kernel, const ProductCase& batch, const Runner& run,
                         int64_t most_alone = 64);

}  // namespace gemm::testing
