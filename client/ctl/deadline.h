// How long a call of gemmctl may take where --deadline does not say: far longer
// than it needs on a slow line and a slow machine, so that only what hangs is
// ended. A peer that is gone is noticed sooner, by the client's keepalive.
#pragma once

#include "absl/time/time.h"

namespace gemmd::ctl {

// Of a question: what the server is, has, or is to forget.
inline constexpr absl::Duration kQuestionDeadline = absl::Seconds(30);

// Of a call that moves so many bytes: two minutes, and a second for each MiB.
absl::Duration TransferDeadline(double bytes);

// Of a product with so many floating-point operations and so many bytes to move:
// that of the transfer, and a second for each 100 MFLOP.
absl::Duration ProductDeadline(double bytes, double flops);

// Of a benchmark, whose time the server bounds: a minute more than its bound.
absl::Duration BenchmarkDeadline(absl::Duration server_limit);

}  // namespace gemmd::ctl
