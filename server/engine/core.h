// The parts of an engine.
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

// Members are destroyed in reverse order, once nothing is under way and the timer was
// stopped. The devices may still hold leases of ended jobs, so the schedulers outlive
// them.
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

  // The healthy devices, least loaded first: by jobs running and waiting, then by memory
  // in use.
  std::vector<size_t> DevicesByLoad() const;
  // The index of a device of this engine.
  size_t IndexOf(const Device& device) const;

  // Allocates memory of a device. Drops idle replicas if there is no room, and returns
  // RESOURCE_EXHAUSTED if there is still none.
  absl::StatusOr<DeviceBuffer> Allocate(size_t device_index, size_t bytes, Stay stay);
  absl::StatusOr<std::shared_ptr<MatrixMemory>> AllocateMatrix(size_t device_index,
                                                               const Shape& shape, Stay stay);
  // The matrix's replica on a device other than its own. If there is none, makes a new
  // one; its first Await starts the copy. RESOURCE_EXHAUSTED if the device or its part of
  // the store has no room, UNAVAILABLE when draining.
  absl::StatusOr<ReplicaPin> PinReplica(const MatrixPin& pin, size_t device_index);
};

}  // namespace gemmd
