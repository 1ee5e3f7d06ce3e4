// Converts benchmarks between the types of kernels/bench, which gemm_bench uses,
// too, and the contract's messages.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "gemmd/client/types.h"
#include "kernels/bench/options.h"
#include "kernels/bench/report/live_report.h"
#include "kernels/bench/result/row.h"

namespace gemmd::ctl {

// `device`: the server's name for it. Empty: its first device.
client::BenchmarkRequest ToRequest(const gemm::bench::BenchmarkOptions& options,
                                   const std::string& device);

// INTERNAL for types that this program does not know.
absl::StatusOr<gemm::Types> FromProto(const ::gemm::v1::KernelTypes& types);
// Types that the pattern leaves open are UNSPECIFIED.
void Fill(const gemm::bench::TypesPattern& pattern, ::gemm::v1::KernelTypes& out);

// Metadata of the device, then of the server.
gemm::bench::Metadata MetadataOf(const ::gemm::v1::BenchmarkHeader& header);

// INTERNAL for an index beyond the header's shapes, or for unknown types.
absl::StatusOr<gemm::bench::Progress> FromProto(const ::gemm::v1::BenchmarkProgress& progress,
                                                const ::gemm::v1::BenchmarkHeader& header);
absl::StatusOr<std::vector<gemm::bench::Row>> FromProto(const ::gemm::v1::BenchmarkRows& rows,
                                                        const ::gemm::v1::BenchmarkHeader& header);

}  // namespace gemmd::ctl
