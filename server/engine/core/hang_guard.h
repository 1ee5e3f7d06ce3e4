// The hang guard: gives a device up when work on it does not end in time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "server/engine/core/core.h"
#include "server/engine/core/hang_limit.h"

namespace gemmd {

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
