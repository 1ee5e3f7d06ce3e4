// D = act(beta * C + bias): the problem with alpha 0. Does not read A and B.
#pragma once

#include "absl/status/status.h"
#include "gemm/problem.h"

struct CUstream_st;

namespace gemm {

// Done before it returns. A batch of one.
absl::Status ApplyWithoutProductOnHost(const Problem& problem, const Operands& operands);

// Enqueued on the stream, a batch too. UNAVAILABLE in a build without CUDA.
absl::Status ApplyWithoutProduct(const Problem& problem, const Operands& operands,
                                 CUstream_st* stream);

}  // namespace gemm
