// What the parts of an engine share.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/admission.h"
#include "server/engine/device.h"
#include "server/engine/memory.h"
#include "server/engine/options.h"
#include "server/engine/report.h"
#include "server/engine/scheduler.h"
#include "server/engine/store.h"
#include "server/engine/timer.h"
#include "server/engine/workers.h"

namespace gemmd {

class UploadGroups;

// Torn down from the end, once nothing is under way and the timer was stopped. The
// devices may still hold leases of ended jobs, so the schedulers outlive them.
struct EngineCore {
  EngineOptions options;
  EngineObserver* observer = nullptr;
  std::unique_ptr<Admission> admission;
  std::unique_ptr<QueueLimit> queue_limit;
  std::vector<std::unique_ptr<Scheduler>> schedulers;  // by device
  std::vector<std::unique_ptr<Device>> devices;
  std::unique_ptr<Timer> timer;
  std::unique_ptr<MatrixStore> store;
  std::unique_ptr<UploadGroups> uploads;
  std::unique_ptr<Workers> workers;

  EngineCore();
  ~EngineCore();

  // Healthy devices, the least loaded first: by jobs running and waiting, then
  // by memory in use.
  std::vector<size_t> DevicesByLoad() const;
  // The index of a device of this engine.
  size_t IndexOf(const Device& device) const;

  // Memory of a device. Replicas that nobody uses make way. RESOURCE_EXHAUSTED where
  // there is no room even so.
  absl::StatusOr<DeviceBuffer> Allocate(size_t device_index, size_t bytes, Stay stay);
  absl::StatusOr<std::shared_ptr<MatrixMemory>> AllocateMatrix(size_t device_index,
                                                               const Shape& shape, Stay stay);
  // The matrix's replica on a device other than its own: one that is there, else a new
  // one, which the first Await begins to fill. RESOURCE_EXHAUSTED where the device or
  // its part of the store has no room, UNAVAILABLE when draining.
  absl::StatusOr<ReplicaPin> PinReplica(const MatrixPin& pin, size_t device_index);
};

}  // namespace gemmd
