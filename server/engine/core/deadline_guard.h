// The deadline guard: ends work for a caller at its deadline, or when the server's drain
// has no more time.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/engine/core/core.h"

namespace gemmd {

// Thread-safe. Owned by the guarded object, which must be held by a shared_ptr.
class DeadlineGuard {
 public:
  // Not OK where everything was cancelled before: the object has to end by itself.
  [[nodiscard]] absl::Status Begin(EngineCore& core, std::weak_ptr<Cancellable> watched,
                                   absl::Time deadline);
  // Call once, when the guarded object has ended, even if Begin was never called.
  void End(EngineCore& core);

 private:
  Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t registration_ ABSL_GUARDED_BY(mutex_) = 0;
  Timer::Id timer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
