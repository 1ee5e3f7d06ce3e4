// The CUDA device of a build without CUDA: none.
#include "absl/strings/str_cat.h"
#include "server/engine/device.h"

namespace gemmd {

int CudaDeviceCount() { return 0; }

absl::StatusOr<std::unique_ptr<Device>> CreateCudaDevice(int index, const EngineOptions&) {
  return absl::UnavailableError(absl::StrCat("cuda:", index, ": this build has no CUDA"));
}

}  // namespace gemmd
