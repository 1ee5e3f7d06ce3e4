// The payload upload: copies received bytes from gRPC's slices into staging memory (the
// only host copy), and from there to the device, while later bytes are still on the
// wire.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "server/base/mutex.h"
#include "server/base/workers.h"
#include "server/engine/device/device.h"
#include "server/engine/store/matrix_memory.h"

namespace gemmd {

// OK, or INVALID_ARGUMENT unless the piece [offset, offset + bytes) starts at `next` and
// ends at `end` or before. `what` names the operand in the error.
absl::Status CheckNextBytes(absl::string_view what, uint64_t offset, uint64_t bytes, uint64_t next,
                            uint64_t end);

// Copies all of `from` to `to`.
void CopyCord(const absl::Cord& from, std::byte* to);

// Fills bytes [begin, end) of a matrix's dense form. Thread-safe. Always held by a
// shared_ptr, which pieces under way keep.
class PayloadUpload : public std::enable_shared_from_this<PayloadUpload> {
 public:
  // `on_enqueued` is called once, but not after Abort: with OK when the copy of the last
  // byte was enqueued on the device's upload stream, or with the first error. `what` names
  // the operand in errors.
  PayloadUpload(std::string what, std::shared_ptr<MatrixMemory> target, uint64_t begin,
                uint64_t end, Workers& workers, absl::AnyInvocable<void(absl::Status)> on_enqueued);

  // INVALID_ARGUMENT for bytes out of order or past the end, which are dropped.
  // `consumed` is called in any case.
  absl::Status Append(uint64_t offset, absl::Cord bytes, absl::AnyInvocable<void()> consumed);

  // OK, or INVALID_ARGUMENT if bytes are missing.
  absl::Status CheckComplete() const;

  // Drops pieces not yet copied, and releases the target.
  void Abort();

  // Recorded before the first copy and after the last one. Valid once on_enqueued was
  // called with OK.
  const Event& first_copy() const { return *first_copy_; }
  const Event& last_copy() const { return *last_copy_; }

 private:
  void Stage(uint64_t offset, absl::Cord piece, std::shared_ptr<void> consumed, StagingBlock block);
  absl::Status Enqueue(const MatrixMemory& target, uint64_t offset, uint64_t bytes,
                       const std::byte* staging);

  const std::string what_;
  const uint64_t begin_;
  const uint64_t end_;
  Workers& workers_;
  Device& device_;
  const EventPtr first_copy_;
  const EventPtr last_copy_;

  mutable Mutex mutex_;
  std::shared_ptr<MatrixMemory> target_ ABSL_GUARDED_BY(mutex_);  // null once aborted
  uint64_t next_ ABSL_GUARDED_BY(mutex_);
  uint64_t enqueued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  absl::AnyInvocable<void(absl::Status)> on_enqueued_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
