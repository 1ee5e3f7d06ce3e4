// Groups against their products alone, for the tests of every kernel. Kernels that take no group
// get its products one by one.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/kernels/product_case.h"

namespace gemm::testing {

// A random case of products that differ in m: `extents`. Some have a B or a bias in common.
ProductCase RandomGroupByM(const Types& types, const std::vector<int64_t>& extents, int64_t n,
                           int64_t k, std::mt19937_64& random);

// The same of products that differ in k. Some have C or a bias in common.
ProductCase RandomGroupByK(const Types& types, int64_t m, int64_t n,
                           const std::vector<int64_t>& extents, std::mt19937_64& random);

// Up to `largest` rows each: some have none, some neighbours are equal.
std::vector<int64_t> RandomExtents(size_t products, int64_t largest, std::mt19937_64& random);

// Runs a group and then each of its products, or about `most_alone` of them, by itself. Checks that
// the group is OK, that every product has the same bits as alone and is right, and that no byte
// beside D's elements and no operand changed. Returns the first fault, or an empty string.
std::string CheckGroupOf(const Kernel& kernel, const ProductCase& group, const Runner& run,
                         int64_t most_alone = 64);

}  // namespace gemm::testing
