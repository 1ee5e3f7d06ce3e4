// Parses the option `devices`.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/options.h"

namespace gemmd {

inline constexpr int kMaxHostDevices = 64;

// At least one host or CUDA device.
struct DeviceSpec {
  std::vector<int> cuda;  // indices, in the order asked for
  int host_devices = 0;
};

// Parses auto, cuda, cuda:LIST, host or host:COUNT on a machine with `cuda_devices` CUDA
// devices. INVALID_ARGUMENT for anything else, or an index given twice.
// FAILED_PRECONDITION for a CUDA device that does not exist, with those that do.
absl::StatusOr<DeviceSpec> ParseDeviceSpec(absl::string_view spec, int cuda_devices);

// INVALID_ARGUMENT if an option of a device is out of bounds.
absl::Status CheckDeviceOptions(const EngineOptions& options);

}  // namespace gemmd
