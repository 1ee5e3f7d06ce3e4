// The kinds of device that the server knows, and how `devices` chooses among them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/bounds/options.h"
#include "server/engine/device/device.h"

namespace gemmd {

struct DeviceKind {
  absl::string_view name;   // "cuda": its devices are cuda:0, cuda:1, ...
  absl::string_view title;  // in sentences: "CUDA"
  // Above 0: devices are not found but made, as many as are asked for (host:4), up to
  // this many. 0: the machine has them, and they are chosen by index (cuda:0,2).
  int max_made = 0;
  // Devices of this machine. Null in a build without this kind: there are none.
  int (*count)() = nullptr;
  // UNAVAILABLE, FAILED_PRECONDITION or RESOURCE_EXHAUSTED where the device cannot be had.
  absl::StatusOr<std::unique_ptr<Device>> (*create)(int index,
                                                    const EngineOptions& options) = nullptr;
  // Called once all devices were made, where they share something. May be null.
  void (*share)(int devices, const EngineOptions& options) = nullptr;
};

// In the order in which auto looks for one that is present. The last is made.
absl::Span<const DeviceKind> DeviceKinds();

// Adds a kind after the others, before anything asks for kinds: tests have devices of their
// own, which fail on purpose.
void AddDeviceKind(const DeviceKind& kind);

// Devices of the kind on this machine: 0 for a kind that the build has not.
int DeviceCount(absl::string_view kind);

struct DeviceSpec {
  const DeviceKind* kind = nullptr;
  std::vector<int> indices;  // in the order asked for; not empty
};

// Parses auto, a kind's name (all its devices, or one made), or the name with ":LIST" of
// indices or ":COUNT" of devices to make. INVALID_ARGUMENT for anything else, or an index
// given twice. FAILED_PRECONDITION for a device that does not exist, with those that do.
absl::StatusOr<DeviceSpec> ParseDeviceSpec(absl::string_view spec,
                                           absl::Span<const DeviceKind> kinds);

// The specifications that ParseDeviceSpec takes: "auto, cuda, cuda:LIST (such as cuda:0,1), host or
// host:COUNT".
std::string DeviceSpecForms(absl::Span<const DeviceKind> kinds);

// INVALID_ARGUMENT if an option of a device is out of bounds.
absl::Status CheckDeviceOptions(const EngineOptions& options);

// The devices that `options.devices` names. The codes are those of ParseDeviceSpec, and
// of the kind.
absl::StatusOr<std::vector<std::unique_ptr<Device>>> CreateDevices(const EngineOptions& options);

}  // namespace gemmd
