// The copy of a resident matrix on a device other than its own. It is made for the first
// job that needs it there, and kept for later ones.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/engine/admission.h"
#include "server/engine/memory.h"
#include "server/engine/mutex.h"
#include "server/engine/outbound.h"
#include "server/engine/report.h"

namespace gemmd {

// Thread-safe. Always held by a shared_ptr, which the copy under way keeps. Its memory
// must not be read before Await has reported OK.
class Replica : public std::enable_shared_from_this<Replica> {
 public:
  // Both memories have the same shape and lie on different devices. The content of `from`
  // is complete. `ticket` keeps the engine alive until the copy has ended and both devices
  // no longer use it.
  Replica(std::shared_ptr<MatrixMemory> from, std::shared_ptr<MatrixMemory> to,
          AdmissionTicket ticket);

  const std::shared_ptr<MatrixMemory>& memory() const { return to_; }
  // Directly from device to device if the two can, else through the source's download
  // staging.
  CopyRoute route() const { return route_; }

  // Calls `done` with the outcome once the copy has ended, or at once if it has. The first
  // call starts the copy.
  void Await(absl::AnyInvocable<void(absl::Status)> done);
  // Ends a copy that is not complete with CANCELLED, because nobody waits any more. Memory
  // that the devices still use is kept until they no longer do.
  void Abort();

  bool complete() const;
  bool failed() const;

 private:
  enum class State : uint8_t { kIdle, kCopying, kComplete, kFailed };

  void Begin();
  void CopyThroughHost();
  void OnPiece(ResultPiece piece, std::shared_ptr<AdmissionTicket> ticket);
  void CopyPieceFromPeer();
  void End(const absl::Status& status);

  const std::shared_ptr<MatrixMemory> to_;
  const CopyRoute route_;

  mutable Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kIdle;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<MatrixMemory> from_ ABSL_GUARDED_BY(mutex_);       // null once ended
  std::shared_ptr<AdmissionTicket> ticket_ ABSL_GUARDED_BY(mutex_);  // and work under way
  std::shared_ptr<Outbound> outbound_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // first byte that no peer copy brings yet
  std::vector<absl::AnyInvocable<void(absl::Status)>> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
