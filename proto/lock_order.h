// For programs that call or serve gRPC, to do at their start. A library leaves it to its program.
#pragma once

#include "absl/synchronization/mutex.h"

namespace gemmd {

// Spares gRPC's locks a check of their order. Debian builds Abseil with it: each lock and unlock of
// gRPC, on any thread, then takes one spinlock that the whole process shares.
inline void LeaveLockOrderUnchecked() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace gemmd
