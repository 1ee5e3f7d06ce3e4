// What the option `devices` asks for.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/options.h"

namespace gemmd {

inline constexpr int kMaxHostDevices = 64;

// Either list may be empty, not both.
struct DeviceSpec {
  std::vector<int> cuda;  // indices, in the order asked for
  int host_devices = 0;
};

// Parses auto, cuda, cuda:LIST, host or host:COUNT on a machine with
// `cuda_devices` CUDA devices. INVALID_ARGUMENT for anything else or an index
// named twice; FAILED_PRECONDITION for a CUDA device that is not there, with
// those that are.
absl::StatusOr<DeviceSpec> ParseDeviceSpec(absl::string_view spec, int cuda_devices);

// INVALID_ARGUMENT for an option of the device layer that is out of bounds.
absl::Status CheckDeviceOptions(const EngineOptions& options);

}  // namespace gemmd
