// The deadlines of gemmctl's calls where --deadline is not given. They are far longer
// than a call needs on a slow line and a slow machine, so they end only calls that
// hang. The client's keepalive notices sooner when the server is gone.
#pragma once

#include "absl/time/time.h"

namespace gemmd::ctl {

// For a query or a deletion, without payload.
inline constexpr absl::Duration kQuestionDeadline = absl::Seconds(30);

// For a call that transfers `bytes`: two minutes, and a second for each MiB.
absl::Duration TransferDeadline(double bytes);

// For a product of `flops` floating-point operations that transfers `bytes`: as for
// the transfer, and a second for each 100 MFLOP.
absl::Duration ProductDeadline(double bytes, double flops);

// For a product of matrices whose shapes the caller may not ask for.
inline constexpr absl::Duration kUnknownProductDeadline = absl::Hours(1);

// For a benchmark: a minute more than the server's limit on its time.
absl::Duration BenchmarkDeadline(absl::Duration server_limit);

}  // namespace gemmd::ctl
