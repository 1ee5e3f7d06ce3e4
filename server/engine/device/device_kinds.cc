#include "server/engine/device/device_kinds.h"

#include <iterator>
#include <utility>

#include "server/engine/device/host/host_device.h"
#if GEMM_HAS_CUDA
#include "server/engine/device/cuda/cuda_device.h"
#endif

namespace gemmd {
namespace {

constexpr DeviceKind kKinds[] = {
#if GEMM_HAS_CUDA
    {.name = "cuda", .title = "CUDA", .count = CudaDeviceCount, .create = CudaDevice::Create},
#else
    {.name = "cuda", .title = "CUDA"},
#endif
    {.name = "host",
     .title = "host",
     .max_made = 64,
     .create = HostDevice::Create,
     .share = ShareHostCores},
};

// And those that were added.
std::vector<DeviceKind>& Kinds() {
  static auto* const kinds = new std::vector<DeviceKind>(std::begin(kKinds), std::end(kKinds));
  return *kinds;
}

}  // namespace

absl::Span<const DeviceKind> DeviceKinds() { return Kinds(); }

void AddDeviceKind(const DeviceKind& kind) { Kinds().push_back(kind); }

int DeviceCount(absl::string_view kind) {
  for (const DeviceKind& one : Kinds()) {
    if (one.name == kind && one.count != nullptr) return one.count();
  }
  return 0;
}

absl::StatusOr<std::vector<std::unique_ptr<Device>>> CreateDevices(const EngineOptions& options) {
  absl::StatusOr<DeviceSpec> spec = ParseDeviceSpec(options.devices, Kinds());
  if (!spec.ok()) return spec.status();
  if (absl::Status status = CheckDeviceOptions(options); !status.ok()) return status;
  std::vector<std::unique_ptr<Device>> devices;
  for (const int index : spec->indices) {
    absl::StatusOr<std::unique_ptr<Device>> device = spec->kind->create(index, options);
    if (!device.ok()) return device.status();
    devices.push_back(*std::move(device));
  }
  if (spec->kind->share != nullptr) {
    spec->kind->share(static_cast<int>(devices.size()), options);
  }
  return devices;
}

}  // namespace gemmd
