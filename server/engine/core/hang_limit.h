// How long work on a device may take before it counts as hung.
#pragma once

#include "absl/time/time.h"
#include "gemm/kernel.h"
#include "gemm/problem.h"
#include "server/engine/store/matrix.h"

namespace gemmd {

// What every kernel of the kind reaches, on a busy machine, too, in operations a second. On a host
// the slowest is the reference with subnormal operands, at 4e7.
inline constexpr double kSlowestCuda = 1e10;
inline constexpr double kSlowestHost = 1e7;

// What a launch has to do, in operations: those of its products, and some for each element,
// which may be generated.
double WorkOf(const gemm::Problem& problem);
double WorkOf(const Shape& generated);

// On a GPU a launch takes at most this many times as long as such launches did: at a low clock,
// beside another process, or with launch parameters that make the kernel slow. A host's operands
// may make a kernel slower than any such factor says.
inline constexpr int kMostOfMeasured = 64;

// How long a launch of so many operations takes at most. `measured`: such launches before; zero
// where that is not known.
absl::Duration LongestTime(gemm::Target target, double operations, absl::Duration measured);

// How long work may take before it counts as hung: --job-timeout, and the longest time of what is
// under way on the device, on each of its streams, quick ones too, since that may run before it.
absl::Duration HangLimit(absl::Duration job_timeout, int streams, absl::Duration longest);

// How long work has after its limit, before its device is lost: 5 s, or the limit where that
// is shorter. The limit counts time in which the process stood still, after which the timer
// and the end of the work are both due.
absl::Duration HangGrace(absl::Duration limit);

}  // namespace gemmd
