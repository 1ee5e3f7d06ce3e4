// The payload of a small job: bytes that wait in host memory until the job has a stream,
// and then go up in one staging block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "server/engine/core/report.h"
#include "server/engine/device/staging.h"

namespace gemmd {

// Not thread-safe: the job's lock guards it.
class SmallPayload {
 public:
  // The dense bytes of each operand, by role; 0 where it is no payload.
  using Sizes = std::array<uint64_t, kRoleCount>;

  SmallPayload() = default;
  explicit SmallPayload(const Sizes& sizes);

  // The next bytes of an operand; INVALID_ARGUMENT where they are not. Bytes that wait
  // for others are copied out of the transport's read buffers.
  absl::Status Append(Role role, uint64_t offset, absl::Cord bytes);
  bool complete() const { return missing_bytes_ == 0; }

  // Copies what is left there, too, for a payload that has to wait in the queue.
  void LetGoOfReadBuffers();

  // Copies an operand to `to`: its lines, of `line_bytes`, begin `pitch_bytes` apart.
  void CopyTo(Role role, int64_t line_bytes, int64_t pitch_bytes, std::byte* to) const;

  // Puts all operands into `block`, densely, in the order of roles.
  void Stage(StagingBlock block);
  bool staged() const { return static_cast<bool>(block_); }
  // Hands the block over, with all that Stage put there.
  StagingBlock TakeBlock() { return std::move(block_); }

 private:
  Sizes sizes_{};
  Sizes next_{};
  uint64_t missing_bytes_ = 0;
  std::array<absl::Cord, kRoleCount> bytes_;  // until they are staged
  StagingBlock block_;
};

}  // namespace gemmd
