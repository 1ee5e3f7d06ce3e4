#include "server/engine/device/device.h"

namespace gemmd {

absl::Status Stream::CopyFrom(const Device& device, const std::byte*, std::byte*, size_t) {
  return absl::InternalError("this device cannot copy straight from " + device.info().name);
}

}  // namespace gemmd
