// Guards that end work that takes too long: for its caller, and on its device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_losses.h"

namespace gemmd {

// Ends work for a caller at its deadline, or when the server's drain has no more time.
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

// Gives a device up when work on it does not end in time.
// Nothing can stop a kernel. So when it does not end in time its device is given up
// (Device::Lose), which ends all that waits for the device. The guarded time is from the
// construction, when the work is enqueued, to End. Moved along with the work's callback.
class HangGuard {
 public:
  HangGuard() = default;
  // Guards nothing where --job-timeout is 0. `core` must outlive this. `operations` and `measured`
  // are those of LongestTime.
  HangGuard(EngineCore& core, size_t device_index, double operations,
            absl::Duration measured = absl::ZeroDuration());
  HangGuard(HangGuard&& other) noexcept { *this = std::move(other); }
  HangGuard& operator=(HangGuard&& other) noexcept;
  ~HangGuard() { End(); }

  void End();

 private:
  EngineCore* core_ = nullptr;  // null: guards nothing
  size_t device_index_ = 0;
  uint64_t ticket_ = 0;  // DeviceLosses::BeginWork
};

}  // namespace gemmd
