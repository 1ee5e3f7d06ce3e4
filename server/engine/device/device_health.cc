#include "server/engine/device/device_health.h"

#include "absl/strings/str_cat.h"

namespace gemmd {

absl::Status DeviceHealth::status() const {
  if (!lost()) return absl::OkStatus();
  MutexLock lock(mutex_);
  return status_;
}

absl::Status DeviceHealth::Lose(absl::string_view why) {
  MutexLock lock(mutex_);
  if (status_.ok()) {
    status_ = absl::UnavailableError(absl::StrCat("device ", device_, " is lost: ", why));
    lost_.store(true, std::memory_order_release);
  }
  return status_;
}

}  // namespace gemmd
