// Runs a benchmark on the server, until it ends or Ctrl-C.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/ctl/context.h"
#include "gemmd/client/client.h"
#include "kernels/bench/options.h"

namespace gemmd::ctl {

// `device`: the server's name for it; empty: its first. `take` gets each message; an error of it
// cancels the benchmark, and is what this returns.
absl::StatusOr<client::BenchmarkEnd> RunBenchmark(
    const Context& context, client::Client& client, const gemm::bench::BenchmarkOptions& options,
    const std::string& device,
    const std::function<absl::Status(const client::BenchmarkResponse&)>& take);

}  // namespace gemmd::ctl
