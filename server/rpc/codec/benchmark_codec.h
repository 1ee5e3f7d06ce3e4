// Converts benchmarks between the contract's messages and the types of
// server/benchmark.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gemm/v1/gemm.pb.h"
#include "server/benchmark/benchmarks.h"

namespace gemmd {

// The sizes of a product. INVALID_ARGUMENT names the dimension of `field`, its value and the
// bound.
absl::StatusOr<gemm::bench::Shape> ParseProductSize(const gemm::v1::ProductSize& size,
                                                    const std::string& field);

// INVALID_ARGUMENT names the field, the value and the bound. Unknown suite: NOT_FOUND.
absl::StatusOr<BenchmarkSpec> ParseBenchmark(const gemm::v1::BenchmarkRequest& request);

// Fills all fields except the server's version and commit.
void Fill(const BenchmarkOutline& outline, gemm::v1::BenchmarkHeader& out);
void Fill(const gemm::bench::Progress& progress, gemm::v1::BenchmarkProgress& out);
void Fill(const gemm::bench::Row& row, gemm::v1::BenchmarkRow& out);
void Fill(const BenchmarkTotals& totals, gemm::v1::BenchmarkEnd& out);

}  // namespace gemmd
