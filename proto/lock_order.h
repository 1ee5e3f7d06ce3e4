// For programs that call or serve gRPC, to do at their start. A library leaves it to its program.
#pragma once

#include "absl/synchronization/mutex.h"

namespace gemmd {

// Turns off Abseil's check of the order of locks. Debian's Abseil has it on: each lock and unlock
// of gRPC, on any thread, then takes one spinlock that the whole process shares.
inline void LeaveLockOrderUnchecked() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace gemmd
