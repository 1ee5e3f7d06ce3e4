// D = act(beta * C + bias): the problem with alpha 0. Does not read A and B.
#pragma once

#include "absl/status/status.h"
#include "gemm/problem.h"

struct CUstream_st;

namespace gemm {

// Returns once it is done. Takes a batch of one.
absl::Status ApplyWithoutProductOnHost(const Problem& problem, const Operands& operands);

// Enqueues it on the stream. Takes any batch. UNAVAILABLE in a build without CUDA.
absl::Status ApplyWithoutProduct(const Problem& problem, const Operands& operands,
                                 CUstream_st* stream);

}  // namespace gemm
