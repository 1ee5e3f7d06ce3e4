// What the engine does when a device is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/engine/bounds/stats.h"
#include "server/engine/core/core.h"

namespace gemmd {

// Looks at the devices' health a few times a second, since an error may be found by any
// thread and under any lock. A device that is lost gets no new jobs from that moment on
// (EngineCore::DevicesByLoad). Here its resident matrices are moved to their replicas, or
// named as lost, and the jobs and transfers that it has are ended. Thread-safe.
class DeviceLosses {
 public:
  // `core` must outlive this.
  explicit DeviceLosses(EngineCore& core);

  // Looks at once, and from then on by the engine's timer.
  void Watch();
  // Deals with devices that were lost since the last call.
  void Look();
  // What is under way on a device, for the hang guard. BeginWork returns the most of it.
  double BeginWork(size_t device_index, double work);
  void EndWork(size_t device_index, double work);
  // Work on the device has not ended within `limit`: gives the device up.
  void OnHang(size_t device_index, absl::Duration limit);

  DeviceLossStats stats(size_t device_index) const;

 private:
  void Deal(size_t device_index, const absl::Status& why);

  EngineCore& core_;
  mutable Mutex mutex_;
  std::vector<DeviceLossStats> stats_ ABSL_GUARDED_BY(mutex_);            // by device
  std::vector<std::multiset<double>> under_way_ ABSL_GUARDED_BY(mutex_);  // by device
  std::vector<bool> dealt_with_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
