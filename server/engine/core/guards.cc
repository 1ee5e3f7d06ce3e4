#include "server/engine/core/guards.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace gemmd {

absl::Status DeadlineGuard::Begin(EngineCore& core, std::weak_ptr<Cancellable> watched,
                                  absl::Time deadline) {
  MutexLock lock(mutex_);
  if (ended_) return absl::OkStatus();
  const absl::StatusOr<uint64_t> registered = core.admission->Register(watched);
  if (!registered.ok()) return registered.status();
  registration_ = *registered;
  if (deadline == absl::InfiniteFuture()) return absl::OkStatus();
  timer_ = core.timer->Schedule(deadline, [watched = std::move(watched)] {
    const std::shared_ptr<Cancellable> running = watched.lock();
    if (running == nullptr) return;
    running->Cancel(
        absl::DeadlineExceededError(absl::StrCat("the deadline passed ", running->Where())));
  });
  return absl::OkStatus();
}

void DeadlineGuard::End(EngineCore& core) {
  MutexLock lock(mutex_);
  ended_ = true;
  if (registration_ != 0) core.admission->Unregister(registration_);
  if (timer_.sequence != 0) core.timer->Cancel(timer_);
}

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
