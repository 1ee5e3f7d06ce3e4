// The host as a device: its streams are threads, its device memory is host memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/mutex.h"
#include "server/engine/device/completion_queue.h"
#include "server/engine/device/device.h"
#include "server/engine/device/device_health.h"
#include "server/engine/device/host/host_stream.h"

namespace gemmd {

// Memory mapped for the host device: page-aligned and zeroed. Pages are not allocated until they
// are touched. Unmapped on destruction; empty when moved from.
class HostMapping {
 public:
  // RESOURCE_EXHAUSTED names the bytes requested and the reason.
  static absl::StatusOr<HostMapping> Create(size_t bytes);

  HostMapping(HostMapping&& other) noexcept { *this = std::move(other); }
  HostMapping& operator=(HostMapping&& other) noexcept;
  ~HostMapping();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  HostMapping(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

class HostDevice final : public Device {
 public:
  // RESOURCE_EXHAUSTED if there is not enough memory. CheckDeviceOptions must accept
  // `options`.
  static absl::StatusOr<std::unique_ptr<Device>> Create(int index, const EngineOptions& options);
  // Waits for the work enqueued so far.
  ~HostDevice() override;

  EventPtr AcquireEvent() override;
  absl::Duration Elapsed(const Event& from, const Event& to) override;
  bool CompletionThreadIsBusy() override { return completions_->HasMore(); }
  absl::Status Health() const override { return health_.status(); }
  void Lose(absl::string_view why) override;
  bool Idle() override;
  // The number of mappings made at start.
  int64_t driver_allocations() const override { return static_cast<int64_t>(mappings_.size()); }

 private:
  explicit HostDevice(std::string name) : health_(std::move(name)) {}
  void RecycleEvent(Event* event) override;
  absl::StatusOr<std::byte*> Map(size_t bytes);

  DeviceHealth health_;
  std::vector<HostMapping> mappings_;
  std::unique_ptr<CompletionQueue> completions_;
  Mutex mutex_;
  std::vector<std::unique_ptr<HostEvent>> events_ ABSL_GUARDED_BY(mutex_);
};

// Divides the cores among all streams of the devices, which may compute at once, for
// kernels that use threads of their own. Applies to the whole process.
void ShareHostCores(int devices, const EngineOptions& options);

}  // namespace gemmd
