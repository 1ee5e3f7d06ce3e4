// Whether the ways to compute a group agree with each other, and with sums in double precision.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "gemm/problem.h"
#include "tests/kernels/grouped_bench_baselines.h"

namespace gemm::testing {

// Runs each candidate once, and looks at the first, a middle and the last row of some products, the
// largest and the smallest among them. Empty, or a line for each candidate that is wrong. All
// operands are in device memory; there is no epilogue.
std::string CheckResults(const std::vector<GroupCandidate>& candidates, const Problem& group,
                         const Operands& operands, cudaStream_t stream);

}  // namespace gemm::testing
