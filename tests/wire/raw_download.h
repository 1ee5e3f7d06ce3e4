// GetMatrix with messages taken apart by hand: the least a client can do, and the same
// for every server measured.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "grpcpp/grpcpp.h"

namespace gemmd::wire {

// Fills `into`, all of it, with the matrix: in one call on one channel, in ranges over
// several. DATA_LOSS where a call ends with too few bytes or too many.
absl::Status Download(const std::vector<std::shared_ptr<grpc::Channel>>& channels,
                      const std::string& matrix_id, absl::Span<std::byte> into);

}  // namespace gemmd::wire
