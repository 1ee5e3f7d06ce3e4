// Keeps a stream busy for a while.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

struct CUstream_st;

namespace gemm::bench {

// Enqueues a kernel of one thread that does nothing for `nanoseconds`.
absl::Status EnqueueSpin(int64_t nanoseconds, CUstream_st* stream);

}  // namespace gemm::bench
