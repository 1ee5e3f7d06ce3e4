#include "server/engine/core/device_losses.h"

#include "absl/strings/str_cat.h"
#include "server/base/clock.h"

namespace gemmd {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(100);

}  // namespace

DeviceLosses::DeviceLosses(EngineCore& core)
    : core_(core),
      stats_(core.devices.size()),
      under_way_(core.devices.size()),
      dealt_with_(core.devices.size(), false) {}

void DeviceLosses::Watch() {
  Look();
  core_.timer->Schedule(SteadyNow() + kPeriod, [this] { Watch(); });
}

void DeviceLosses::Look() {
  for (size_t i = 0; i < core_.devices.size(); ++i) {
    const absl::Status health = core_.devices[i]->Health();
    if (health.ok()) continue;
    {
      MutexLock lock(mutex_);
      if (dealt_with_[i]) continue;
      dealt_with_[i] = true;
    }
    Deal(i, health);
  }
}

double DeviceLosses::BeginWork(size_t device_index, double work) {
  MutexLock lock(mutex_);
  under_way_[device_index].insert(work);
  return *under_way_[device_index].rbegin();
}

void DeviceLosses::EndWork(size_t device_index, double work) {
  MutexLock lock(mutex_);
  std::multiset<double>& under_way = under_way_[device_index];
  under_way.erase(under_way.find(work));
}

void DeviceLosses::OnHang(size_t device_index, absl::Duration limit) {
  Device& device = *core_.devices[device_index];
  if (device.Health().ok()) {
    MutexLock lock(mutex_);
    ++stats_[device_index].hangs;
  }
  device.Lose(absl::StrCat("work on it did not end within ", absl::FormatDuration(limit),
                           ", which is --job-timeout and the time of the slowest kernel"));
  Look();
}

void DeviceLosses::Deal(size_t device_index, const absl::Status& why) {
  Device& device = *core_.devices[device_index];
  const StoreLoss matrices = core_.store->LoseDevice(device_index);
  {
    MutexLock lock(mutex_);
    stats_[device_index].matrices_lost = matrices.lost;
    stats_[device_index].matrices_moved = matrices.moved;
  }
  if (core_.observer != nullptr) {
    core_.observer->OnDeviceLost({.device = device.info().name,
                                  .why = why,
                                  .matrices_lost = matrices.lost,
                                  .matrices_moved = matrices.moved});
  }
  core_.admission->CancelOn(device, why);
}

DeviceLossStats DeviceLosses::stats(size_t device_index) const {
  MutexLock lock(mutex_);
  return stats_[device_index];
}

}  // namespace gemmd
