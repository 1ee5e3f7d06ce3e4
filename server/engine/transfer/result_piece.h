// Bytes of a matrix, downloaded for a caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "server/engine/device/staging.h"

namespace gemmd {

// A piece of a result in pinned memory. It keeps a staging block in use.
struct ResultPiece {
  uint64_t offset = 0;
  absl::Span<const std::byte> bytes;
  std::shared_ptr<StagingBlock> owner;
};

}  // namespace gemmd
