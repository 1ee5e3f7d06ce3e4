// The baselines of grouped_bench: cuBLAS and cuBLASLt, each in its fastest form for the group at
// hand.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gemm/problem.h"

namespace gemm::testing {

// Ends the program if something failed.
void Must(const absl::Status& status);

// A way to compute the group: `enqueue` puts one run of it onto the stream.
struct GroupCandidate {
  std::string name;
  std::function<void(cudaStream_t)> enqueue;
};

// cublasGemmGroupedBatchedEx, launched and as a graph, with a cuBLAS group for each product and
// with one for all products of the same size.
std::vector<GroupCandidate> CublasGrouped(const Problem& group, const Operands& operands);

// A call of cuBLASLt for each product, as graphs whose products are in a line or on several
// streams. One form takes the heuristic's favourite, another the fastest of its first eight.
std::vector<GroupCandidate> CublasLtOneByOne(const Problem& group, const Operands& operands,
                                             cudaStream_t stream);

// Microseconds of a run, the least of some. For the choice among the forms of a baseline.
double QuickMicroseconds(const std::function<void(cudaStream_t)>& enqueue, cudaStream_t stream,
                         int runs);

}  // namespace gemm::testing
