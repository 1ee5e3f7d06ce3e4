// The devices that the options name, of either kind.
#include "server/engine/device.h"

#include "server/engine/device_spec.h"
#include "server/engine/host_device.h"

namespace gemmd {

absl::Status Stream::CopyFrom(const Device& device, const std::byte*, std::byte*, size_t) {
  return absl::InternalError("this device cannot copy straight from " + device.info().name);
}

absl::StatusOr<std::vector<std::unique_ptr<Device>>> CreateDevices(const EngineOptions& options) {
  absl::StatusOr<DeviceSpec> spec = ParseDeviceSpec(options.devices, CudaDeviceCount());
  if (!spec.ok()) return spec.status();

  std::vector<std::unique_ptr<Device>> devices;
  for (const int index : spec->cuda) {
    absl::StatusOr<std::unique_ptr<Device>> device = CreateCudaDevice(index, options);
    if (!device.ok()) return device.status();
    devices.push_back(*std::move(device));
  }
  for (int index = 0; index < spec->host_devices; ++index) {
    absl::StatusOr<std::unique_ptr<Device>> device = CreateHostDevice(index, options);
    if (!device.ok()) return device.status();
    devices.push_back(*std::move(device));
  }
  if (spec->host_devices > 0) ShareHostCores(spec->host_devices * options.streams_per_device);
  return devices;
}

}  // namespace gemmd
