// Benchmarks that must be refused, each with its code and what its sentence must
// say.
#pragma once

#include <vector>

#include "tests/rpc/bad_transfers.h"

namespace gemmd {

// For a BoundedServer.
const std::vector<BadTransfer>& BadBenchmarks();

}  // namespace gemmd
