// The payload of a small job. Its bytes wait in host memory until the job has a stream, and then
// lie in one staging block. Kernels read the smallest payloads there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "server/engine/core/report.h"
#include "server/engine/device/staging.h"
#include "server/engine/job/job_admission.h"
#include "server/engine/store/matrix.h"

namespace gemmd {

// An operand in a staging block.
struct StagedOperand {
  size_t offset = 0;  // in the block
  int64_t lines = 0;  // 0: it is no payload
  int64_t line_bytes = 0;
  int64_t pitch_bytes = 0;  // from one line to the next

  uint64_t dense_bytes() const { return static_cast<uint64_t>(lines * line_bytes); }
};
using StagedLayout = ByRole<StagedOperand>;

// Those whose shape is given, by role: densely, one after the other.
StagedLayout DenseLayout(const ByRole<const Shape*>& shapes);
// Or as they lie in device memory, with gaps between lines, each from a boundary of it on.
StagedLayout PitchedLayout(const ByRole<const Shape*>& shapes);

// Not thread-safe: the job's lock guards it.
class SmallPayload {
 public:
  SmallPayload() = default;
  explicit SmallPayload(const StagedLayout& layout);

  // The next bytes of an operand; INVALID_ARGUMENT where they are not. Bytes that wait
  // for others are copied out of the transport's read buffers.
  absl::Status Append(Role role, uint64_t offset, absl::Cord bytes);
  bool complete() const { return missing_bytes_ == 0; }

  // Copies the rest out of them, too, for a payload that has to wait in the queue.
  void LetGoOfReadBuffers();

  // Copies an operand to `to`: its lines, of `line_bytes`, begin `pitch_bytes` apart.
  void CopyTo(Role role, int64_t line_bytes, int64_t pitch_bytes, std::byte* to) const;

  // Puts all operands into `block`, as the layout says.
  void Stage(StagingBlock block);
  bool staged() const { return static_cast<bool>(block_); }
  // Hands the block over, with all that Stage put there.
  StagingBlock TakeBlock() { return std::move(block_); }

 private:
  StagedLayout layout_{};
  ByRole<uint64_t> next_{};
  uint64_t missing_bytes_ = 0;
  ByRole<absl::Cord> bytes_;  // until they are staged
  StagingBlock block_;
};

// Enqueuing a copy takes the device's thread longer than the few bytes of a small product take to
// cross the bus. So a kernel reads a small payload in the staging block where it lies, and writes a
// small result into one, and neither is copied.
struct ZeroCopy {
  bool payload = false;
  bool result = false;

  // `bytes` bounds the payload, and the result, as they would lie in device memory. Both are copied
  // if the kernel would cross the bus again and again, or if the product is checked, which reads
  // them once more. A result is also copied if it is kept, or has gaps between its lines. For jobs
  // that run alone: launches of several (CoalescedLaunch) always copy.
  static ZeroCopy Of(const AdmittedJob& job, JobHoldings& holdings, size_t bytes);
};

}  // namespace gemmd
