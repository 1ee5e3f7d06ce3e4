// What the parts of an engine share.
#pragma once

#include <memory>
#include <vector>

#include "server/engine/admission.h"
#include "server/engine/device.h"
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
};

}  // namespace gemmd
