// Products against blocks of their rows, for the tests of every kernel that promises them.
#pragma once

#include <random>
#include <string>

#include "tests/kernels/product_case.h"

namespace gemm::testing {

// A random case whose rows may be computed in blocks: the bias is of columns.
ProductCase RandomRowsCase(const Types& types, int64_t m, int64_t n, int64_t k,
                           std::mt19937_64& random);

// Runs a product and then blocks of its rows, `block_rows` each, the last with the rest. Checks
// that every block has the bits of its rows of the whole. Returns the first fault, or an empty
// string.
std::string CheckRowBlocksOf(const Kernel& kernel, const ProductCase& whole, const Runner& run,
                             int64_t block_rows);

}  // namespace gemm::testing
