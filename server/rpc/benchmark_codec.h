// Benchmarks between the contract's messages and what measures them.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gemm/v1/gemm.pb.h"
#include "server/benchmark/benchmarks.h"

namespace gemmd {

// INVALID_ARGUMENT names the field, the value and the bound; NOT_FOUND a suite
// that there is not.
absl::StatusOr<BenchmarkSpec> ParseBenchmark(const gemm::v1::BenchmarkRequest& request);

// All but the server's version.
void Fill(const BenchmarkOutline& outline, gemm::v1::BenchmarkHeader& out);
void Fill(const gemm::bench::Progress& progress, gemm::v1::BenchmarkProgress& out);
void Fill(const gemm::bench::Row& row, gemm::v1::BenchmarkRow& out);
void Fill(const BenchmarkTotals& totals, gemm::v1::BenchmarkEnd& out);

}  // namespace gemmd
