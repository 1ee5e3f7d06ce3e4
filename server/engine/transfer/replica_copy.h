// Fills a replica in pieces: directly from device to device if the two can, else through
// the source's download staging.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/mutex.h"
#include "server/engine/core/core.h"
#include "server/engine/policy/admission.h"
#include "server/engine/store/matrix_memory.h"
#include "server/engine/store/store.h"
#include "server/engine/transfer/result_download.h"

namespace gemmd {

// The matrix's replica on a device other than its own. If there is none, makes a new
// one; its first Await starts the copy. RESOURCE_EXHAUSTED if the device or its part of
// the store has no room, UNAVAILABLE when draining.
absl::StatusOr<ReplicaPin> PinReplica(EngineCore& core, const MatrixPin& pin, size_t device_index);

class ReplicaCopy final : public Replica, public std::enable_shared_from_this<ReplicaCopy> {
 public:
  // Both memories have the same shape and lie on different devices. The content of `from`
  // is complete. `ticket` keeps the engine alive until the copy has ended and both devices
  // no longer use it.
  ReplicaCopy(std::shared_ptr<MatrixMemory> from, std::shared_ptr<MatrixMemory> to,
              EngineCore& core, AdmissionTicket ticket);

  const std::shared_ptr<MatrixMemory>& memory() const override { return to_; }
  CopyRoute route() const override { return route_; }
  void Await(absl::AnyInvocable<void(absl::Status)> done) override;
  void Abort() override;
  uint64_t missing_bytes() const override;
  bool complete() const override;
  bool failed() const override;

 private:
  enum class State : uint8_t { kIdle, kCopying, kComplete, kFailed };

  void Begin();
  void CopyThroughHost();
  void OnPiece(ResultPiece piece, std::shared_ptr<AdmissionTicket> ticket);
  void CopyPieceFromPeer();
  void AddArrived(uint64_t bytes);
  void End(const absl::Status& status);

  const std::shared_ptr<MatrixMemory> to_;
  EngineCore& core_;
  const CopyRoute route_;

  mutable Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kIdle;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<MatrixMemory> from_ ABSL_GUARDED_BY(mutex_);       // null once ended
  std::shared_ptr<AdmissionTicket> ticket_ ABSL_GUARDED_BY(mutex_);  // and work under way
  std::shared_ptr<ResultDownload> download_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;       // first byte that no peer copy brings yet
  uint64_t arrived_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes
  absl::Time begun_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::AnyInvocable<void(absl::Status)>> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
