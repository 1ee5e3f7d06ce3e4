// The health of one device.
#pragma once

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/base/mutex.h"

namespace gemmd {

// Whether a device is lost, and why. Once lost it stays lost. Thread-safe.
class DeviceHealth {
 public:
  // `device`: "cuda:0".
  explicit DeviceHealth(std::string device) : device_(std::move(device)) {}

  bool lost() const { return lost_.load(std::memory_order_acquire); }
  // OK, or UNAVAILABLE with the reason for which the device was lost.
  absl::Status status() const;
  // Records the loss and returns status(). The first reason stays.
  absl::Status Lose(absl::string_view why);

 protected:
  const std::string device_;

 private:
  std::atomic<bool> lost_{false};
  mutable Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
