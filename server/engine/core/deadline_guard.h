// Lets the engine end what runs for a caller: at its deadline, or when the
// server's drain has no more time.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/engine/core/core.h"

namespace gemmd {

// Thread-safe. The one watched owns it, and is held by a shared_ptr.
class DeadlineGuard {
 public:
  void Begin(EngineCore& core, std::weak_ptr<Cancellable> watched, absl::Time deadline);
  // Once, when the watched has ended; also where Begin was never called.
  void End(EngineCore& core);

 private:
  Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t registration_ ABSL_GUARDED_BY(mutex_) = 0;
  Timer::Id timer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
