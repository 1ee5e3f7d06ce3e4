#include "server/engine/core/hang_guard.h"

#include <utility>

#include "server/engine/core/device_losses.h"

namespace gemmd {

HangGuard::HangGuard(EngineCore& core, size_t device_index, double operations,
                     absl::Duration measured)
    : device_index_(device_index) {
  if (core.options.job_timeout == absl::ZeroDuration()) return;
  core_ = &core;
  ticket_ = core.losses->BeginWork(
      device_index,
      LongestTime(core.devices[device_index]->info().caps.target, operations, measured));
}

HangGuard& HangGuard::operator=(HangGuard&& other) noexcept {
  if (this == &other) return *this;
  End();
  core_ = std::exchange(other.core_, nullptr);
  device_index_ = other.device_index_;
  ticket_ = other.ticket_;
  return *this;
}

void HangGuard::End() {
  EngineCore* const core = std::exchange(core_, nullptr);
  if (core != nullptr) core->losses->EndWork(device_index_, ticket_);
}

}  // namespace gemmd
