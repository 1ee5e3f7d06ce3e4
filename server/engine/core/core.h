// The parts of an engine.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/timer.h"
#include "server/base/workers.h"
#include "server/engine/bounds/options.h"
#include "server/engine/core/copy_times.h"
#include "server/engine/core/report.h"
#include "server/engine/core/traffic_log.h"
#include "server/engine/core/tuning.h"
#include "server/engine/device/device.h"
#include "server/engine/policy/admission.h"
#include "server/engine/policy/cost_model.h"
#include "server/engine/policy/placement.h"
#include "server/engine/policy/scheduler.h"
#include "server/engine/store/matrix_memory.h"
#include "server/engine/store/store.h"

namespace gemmd {

class DeviceLosses;
class UploadGroups;

// Members are destroyed in reverse order, once nothing is under way and the timer and the
// answers were stopped. The devices may still hold leases of ended jobs, so the schedulers
// outlive them.
struct EngineCore {
  EngineOptions options;
  EngineObserver* observer = nullptr;
  std::unique_ptr<Admission> admission;
  std::unique_ptr<QueueLimit> queue_limit;
  // Tells listeners of results and ends, while a device's thread has other work.
  std::unique_ptr<Workers> answers;
  // A hang guard, which uses both, may lie in the devices' callbacks.
  std::unique_ptr<Timer> timer;
  std::shared_ptr<DeviceLosses> losses;
  std::vector<std::unique_ptr<Scheduler>> schedulers;  // by device
  std::vector<std::unique_ptr<CostModel>> costs;       // by device
  std::vector<std::unique_ptr<PlacedWork>> placed;     // by device
  CopyTimes copy_times;
  CurrentTuning tuning;
  TrafficLog traffic;
  std::vector<std::unique_ptr<Device>> devices;
  std::unique_ptr<MatrixStore> store;
  std::shared_ptr<UploadGroups> uploads;
  std::unique_ptr<Workers> workers;  // copy payload

  // The healthy devices, least loaded first: by jobs running and waiting, then by memory
  // in use.
  std::vector<size_t> DevicesByLoad() const;
  // The index of a device of this engine.
  size_t IndexOf(const Device& device) const;

  // RESOURCE_EXHAUSTED where so many bytes are not free on a device, idle replicas dropped or not.
  absl::Status CheckRoom(size_t device_index, size_t bytes) const;
  // Allocates memory of a device. Drops idle replicas if that may make the room, and returns
  // RESOURCE_EXHAUSTED if there is none.
  absl::StatusOr<DeviceBuffer> Allocate(size_t device_index, size_t bytes, Lifetime lifetime);
  absl::StatusOr<std::shared_ptr<MatrixMemory>> AllocateMatrix(size_t device_index,
                                                               const Shape& shape,
                                                               Lifetime lifetime);
};

}  // namespace gemmd
